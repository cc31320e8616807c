// nearwise verify: reads files completely and checks them.
//
// A .nw is checked against its checksums and its structure; other files by header, length and values.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/shared/command.h"
#include "cli/shared/elements.h"
#include "cli/shared/files.h"
#include "cli/shared/quantizer_file.h"
#include "cli/shared/work.h"
#include "nearwise/context.h"
#include "nearwise/dedup.h"
#include "nearwise/graph/knn_graph.h"
#include "nearwise/graph_index.h"
#include "nearwise/ivf.h"
#include "nearwise/storage.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {
namespace {

struct VerifyArguments {
  std::vector<std::filesystem::path> files;
};

constexpr std::size_t chunk_bytes = std::size_t{8} << 20;

// The verify functions return a description of the file, or throw.
std::string verify_container(const std::filesystem::path& path) {
  const ContainerInfo info = inspect(path);
  // Loading an index, a graph or a quantizer checks all checksums, and the structure independently of them.
  if (info.kind == "ivf")
    load_ivf(Context::cpu(), path);
  else if (info.kind == "graph_index")
    load_graph_index(Context::cpu(), path);
  else if (info.kind == "graph")
    load_knn_graph(path);
  else if (info.kind == "pairs")
    load_pairs(path);
  else if (info.kind == "deduplication")
    load_deduplication(path);
  else if (info.kind == "additive_quantizer" || info.kind == "product_quantizer")
    Quantizer::open(path);
  else
    verify(path);
  return fmt::format("container of {}, {} sections", info.kind, info.sections.size());
}

std::string verify_vectors(Session& session, const std::filesystem::path& path) {
  VectorReader reader = read_vectors(path, chunk_bytes);
  const Interrupt::Protection protection = session.interrupt->protect();
  read_chunks(session, reader, require_finite);
  return fmt::format("vectors, {} x {} {}", reader.rows(), reader.dim(), name(reader.type()));
}

std::string verify_neighbors(const std::filesystem::path& path) {
  const Neighbors neighbors = read_neighbor_file(path).neighbors;
  for (std::size_t row = 0; row < neighbors.ids.rows(); ++row)
    for (const Id id : neighbors.ids.row(row))
      if (id < no_id) throw InvalidData(fmt::format("row {}: {} is not an id", row, id));
  for (std::size_t row = 0; row < neighbors.distances.rows(); ++row)
    for (const float distance : neighbors.distances.row(row))
      if (std::isnan(distance)) throw InvalidData(fmt::format("row {}: a distance is NaN", row));
  return fmt::format("neighbours, {} x {}", neighbors.ids.rows(), neighbors.ids.cols());
}

std::string verify_file(Session& session, const std::filesystem::path& path) {
  if (holds_container(path)) return verify_container(path);
  return content_of(path) == Content::vectors ? verify_vectors(session, path) : verify_neighbors(path);
}

ExitCode run_verify(Session& session, const VerifyArguments& arguments) {
  Json files = Json::array();
  std::size_t damaged = 0;
  ExitCode worst = ExitCode::ok;
  for (const std::filesystem::path& file : arguments.files) {
    const std::string path = file.string();
    session.interrupt->check();
    try {
      const std::string what = verify_file(session, path);
      if (session.json)
        files.push_back({{"path", path}, {"ok", true}, {"what", what}});
      else
        print(fmt::format("{}: ok ({})\n", path, what));
    } catch (const std::exception& exception) {
      const Failure failure = describe(exception);
      if (failure.exit_code == ExitCode::interrupted) throw;
      if (failure.exit_code == ExitCode::data) ++damaged;
      // Damage outranks a file that could not be read; among those, the first counts.
      if (failure.exit_code == ExitCode::data || worst == ExitCode::ok) worst = failure.exit_code;
      if (session.json)
        files.push_back(
            {{"path", path}, {"ok", false}, {"code", failure.code}, {"message", failure.message}});
      else
        print(fmt::format("{}: {}: {}\n", path,
                          failure.exit_code == ExitCode::data ? "damaged" : "not verified", failure.message));
    }
  }
  if (session.json) print(Json{{"files", files}, {"damaged", damaged}});
  return worst;
}

}  // namespace

void add_verify(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_verify, "verify", "Check files for damage",
      "  nearwise verify truth.nw base.fbin\n\n"
      "Prints a line per file and exits with 65 if any is damaged. Checks all checksums of a .nw; of other\n"
      "files the header, the length, and the values: finite numbers, valid ids, no distance that is NaN.");
  add_paths(parser, "files", arguments.files, "Files to check")->required();
}

}  // namespace nearwise::cli

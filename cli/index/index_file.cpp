#include "cli/index/index_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/shared/files.h"
#include "cli/shared/search_report.h"

namespace nearwise::cli {
namespace {

Json describe_calibration(const Ivf& index) {
  const std::optional<Calibration> measured = index.calibration();
  if (!measured) return nullptr;
  Json other_k = Json::array();
  for (const RecallAtK& other : measured->other_k)
    other_k.push_back({{"k", other.k},
                       {"probes", other.probes},
                       {"recall", to_json(other.recall)},
                       {"recall_without_rerank", to_json(other.recall_without_rerank)}});
  return {{"recall", to_json(measured->recall)},
          {"recall_without_rerank", to_json(measured->recall_without_rerank)},
          {"target_recall", measured->target_recall},
          {"reached", measured->reached()},
          {"neighbors", measured->neighbors},
          {"rows", measured->rows},
          {"other_k", std::move(other_k)}};
}

std::string summarize_calibration(const Ivf& index) {
  const Calibration measured = index.calibration().value();
  const std::string rerank = measured.candidates
                                 ? fmt::format(" and {} candidates re-ranked ({:.3f} by codes alone)",
                                               *measured.candidates, measured.recall_without_rerank.value)
                                 : "";
  const std::string found =
      fmt::format("recall@{} {:.3f} ({:.3f} to {:.3f}) with {} of {} lists probed{}, {} sample queries",
                  measured.neighbors, measured.recall.value, measured.recall.low, measured.recall.high,
                  measured.probes, index.lists(), rerank, measured.recall.rows);
  return measured.reached()
             ? found
             : fmt::format("warning: target recall {} cannot be reached: {}", measured.target_recall, found);
}

}  // namespace

void remark_on_recall(const Session& session, const Ivf& index, std::size_t k, bool codes_only) {
  if (!index.calibration()) return;
  Calibration measured = *index.calibration();
  if (codes_only) {
    measured.recall = measured.recall_without_rerank;
    for (RecallAtK& other : measured.other_k) other.recall = other.recall_without_rerank;
  }
  if (measured.reached(k)) return;
  std::string known = fmt::format("{:.3f} for k = {}", measured.recall.value, measured.neighbors);
  for (const RecallAtK& other : measured.other_k)
    known += fmt::format(", {:.3f} for k = {}", other.recall.value, other.k);
  remark(session, fmt::format("warning: the recall may be below the target {}: it is {}; see index calibrate",
                              measured.target_recall, known));
}

Ivf open_inverted_file(const Context& context, const std::filesystem::path& path) {
  inspect_as(path, "an inverted file", {"ivf"});
  return load_ivf(context, path);
}

std::uint64_t count_vectors(const std::filesystem::path& index) {
  const ContainerInfo info = inspect_as(index, "an inverted file", {"ivf"});
  const auto ids = std::ranges::find(info.sections, "ids", &SectionInfo::name);
  return ids == info.sections.end() ? 0 : ids->rows;
}

void check_index_output(const std::filesystem::path& output) {
  require_container(output, "an index");
  require_creatable(output);
}

void check_dim(const Session& session, std::size_t dim, const std::filesystem::path& path, RowsView vectors) {
  if (vectors.dim() != dim)
    refuse(session, "vectors and index must have the same dimension, '{}' has {} and the index {}",
           path.string(), vectors.dim(), dim);
}

void check_vectors_by_id(const Session& session, const Ivf& index, const std::filesystem::path& path,
                         RowsView vectors) {
  check_dim(session, index.dim(), path, vectors);
  const auto ids = static_cast<std::size_t>(index.next_id());
  if (vectors.rows() == 0 || vectors.rows() < ids)
    refuse(session, "expected a vector for every id, '{}' has {} and the index has ids up to {}",
           path.string(), vectors.rows(), index.next_id() - 1);
}

ExitCode report_index(const Session& session, const Ivf& index, const std::filesystem::path& output,
                      const Json& more, const std::string& what) {
  Json json = {{"rows", index.size()},
               {"dim", index.dim()},
               {"lists", index.lists()},
               {"codec", index.encoding()},
               {"code_bytes", index.code_bytes()},
               {"metric", name(index.metric())},
               {"probes", index.probes()},
               {"candidates", index.candidates()},
               {"calibration", describe_calibration(index)},
               {"output", output.string()}};
  json.update(more);
  conclude(session, json,
           fmt::format("wrote {} vectors in {} lists to {}: {}", index.size(), index.lists(), output.string(),
                       what));
  if (index.calibration()) remark(session, summarize_calibration(index));
  return ExitCode::ok;
}

}  // namespace nearwise::cli

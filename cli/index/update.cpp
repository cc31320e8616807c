// nearwise index add, remove, merge and calibrate: a new index from one or several.
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/index/index_file.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/work.h"

namespace nearwise::cli {
namespace {

struct UpdateArguments {
  std::filesystem::path index;
  std::vector<std::filesystem::path> indexes;      // merge, instead of the above
  std::filesystem::path vectors;                   // add and calibrate
  std::filesystem::path ids;                       // add and remove
  std::optional<std::size_t> first_id;             // add
  OnDuplicate on_duplicate = OnDuplicate::refuse;  // add
  std::filesystem::path output;                    // may be an input
  std::optional<double> target_recall;             // calibrate, with the next four
  std::optional<std::size_t> queries;
  std::optional<std::size_t> largest_k;
  std::size_t seed = 0;
  bool no_rerank = false;
  ContextArguments context;
};

// Ids of the new vectors; none: the library numbers them.
std::vector<Id> choose_ids(const Session& session, const UpdateArguments& arguments, RowsView vectors) {
  std::vector<Id> ids;
  if (!arguments.ids.empty()) {
    ids = read_ids(arguments.ids);
    if (ids.size() != vectors.rows())
      refuse(session, "expected one id per vector, '{}' has {} ids and '{}' {} vectors",
             arguments.ids.string(), ids.size(), arguments.vectors.string(), vectors.rows());
  } else if (arguments.first_id) {
    constexpr auto largest = static_cast<std::size_t>(std::numeric_limits<Id>::max());
    if (*arguments.first_id > largest || vectors.rows() > largest - *arguments.first_id)
      refuse(session, "ids must be below {}, got --first-id {} for {} vectors", largest, *arguments.first_id,
             vectors.rows());
    ids.resize(vectors.rows());
    std::iota(ids.begin(), ids.end(), static_cast<Id>(*arguments.first_id));
  }
  return ids;
}

ExitCode run_add(Session& session, const UpdateArguments& arguments) {
  check_index_output(arguments.output);
  const Provenance run = describe_run(session);
  const VectorFile file = open_vectors(arguments.vectors);
  const RowsView vectors = file.rows();
  const Context context = open_context(arguments.context);
  return with_index(context, arguments.index, [&](auto& index) {
    check_dim(session, index.dim(), arguments.vectors, vectors);
    const std::vector<Id> ids = choose_ids(session, arguments, vectors);
    Work work(session, context, "vectors", vectors.rows());
    const std::size_t added = add_vectors(work, index, vectors, ids, arguments.on_duplicate);
    save_index(session, index, run, arguments.output);
    return report_index(session, index, arguments.output, {{"added", added}}, fmt::format("{} added", added));
  });
}

ExitCode run_remove(Session& session, const UpdateArguments& arguments) {
  check_index_output(arguments.output);
  const Provenance run = describe_run(session);
  const std::vector<Id> ids = read_ids(arguments.ids);
  const Context context = open_context(arguments.context);
  return with_index(context, arguments.index, [&](auto& index) {
    Work work(session, context, "vectors", index.size());
    const std::size_t removed = work.run([&](const Context& own) { return index.remove(own, ids); });
    save_index(session, index, run, arguments.output);
    return report_index(session, index, arguments.output, {{"removed", removed}},
                        fmt::format("{} removed", removed));
  });
}

ExitCode run_merge(Session& session, const UpdateArguments& arguments) {
  if (arguments.indexes.size() < 2) refuse(session, "expected at least 2 indexes, got 1");
  check_index_output(arguments.output);
  const Provenance run = describe_run(session);
  std::uint64_t vectors = 0;
  for (const std::filesystem::path& index : arguments.indexes) vectors += count_vectors(index);
  const std::uint64_t merged = vectors - count_vectors(arguments.indexes.front());
  const Context context = open_context(arguments.context);
  Work work(session, context, "vectors", vectors);
  work.run([&](const Context& own) { merge_ivf_files(own, arguments.indexes, arguments.output, run); });
  return report_index(session, open_inverted_file(context, arguments.output), arguments.output,
                      {{"merged", merged}}, fmt::format("{} merged", merged));
}

void calibrate(const Session& session, Work& work, Ivf& index, const UpdateArguments& arguments,
               const VectorFile* file) {
  if (file != nullptr) check_vectors_by_id(session, index, arguments.vectors, file->rows());
  if (file == nullptr && index.vectors() == VectorStorage::none)
    refuse(session, "'{}' keeps no vectors: pass the file that they come from", arguments.index.string());
  work.run_on_data([&](const Context& own) {
    index.calibrate(own, file != nullptr ? file->rows() : RowsView(),
                    {.target_recall = arguments.target_recall.value_or(CalibrationOptions().target_recall),
                     .queries = arguments.queries.value_or(CalibrationOptions().queries),
                     .rerank = !arguments.no_rerank,
                     .largest_k = arguments.largest_k.value_or(CalibrationOptions().largest_k)});
  });
}

void calibrate(const Session& session, Work& work, GraphIndex& index, const UpdateArguments& arguments,
               const VectorFile* file) {
  const std::pair<bool, const char*> others[] = {{file != nullptr, "a file of vectors"},
                                                 {arguments.largest_k.has_value(), "--largest-k"},
                                                 {arguments.no_rerank, "--no-rerank"}};
  for (const auto& [is_given, what] : others)
    if (is_given)
      refuse(session, "{} is for inverted files, '{}' is a graph index", what, arguments.index.string());
  const GraphCalibrationOptions defaults;
  work.run_on_data([&](const Context& own) {
    index.calibrate(own, {.target_recall = arguments.target_recall.value_or(defaults.target_recall),
                          .sample = arguments.queries.value_or(defaults.sample)});
  });
}

std::string describe_defaults(const Ivf& index) {
  return fmt::format("searches probe {} lists by default", index.probes());
}
std::string describe_defaults(const GraphIndex& index) {
  return fmt::format("searches have a beam of {} by default", index.beam());
}

ExitCode run_calibrate(Session& session, const UpdateArguments& arguments) {
  check_index_output(arguments.output);
  const Provenance run = describe_run(session);
  std::optional<VectorFile> file;
  if (!arguments.vectors.empty()) file.emplace(open_vectors(arguments.vectors));
  const Context context = open_context(arguments.context, arguments.seed);
  return with_index(context, arguments.index, [&](auto& index) {
    if (index.size() < 2)
      refuse(session, "the index must have at least 2 vectors, '{}' has {}", arguments.index.string(),
             index.size());
    Work work(session, context, "vectors", index.size());
    calibrate(session, work, index, arguments, file ? &*file : nullptr);
    save_index(session, index, run, arguments.output);
    return report_index(session, index, arguments.output, Json::object(), describe_defaults(index));
  });
}

}  // namespace

void add_index_add(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_add, "add", "Add vectors to an index",
                  "  nearwise index add index.nw more.fbin -o index.nw\n"
                  "  nearwise index add trained.nw part2.fbin --first-id 1000000 -o part2.nw\n\n"
                  "Without --ids and --first-id, numbering continues after the largest id ever used.");
  add_path(parser, "index", arguments.index, "Index: .nw")->required();
  add_path(parser, "vectors", arguments.vectors, "Vectors: .npy .fbin .fvecs .u8bin ...")->required();
  add_output(parser, arguments.output, "Index to write: .nw, may be the input");
  CLI::Option* const ids = add_path(parser, "--ids", arguments.ids,
                                    "One id per vector: .npy .ivecs .ibin, or .txt with one per line");
  add_count(parser, "--first-id", arguments.first_id, 0, "Id of the first vector; the others follow in order")
      ->excludes(ids);
  add_choice(
      parser, "--on-duplicate", arguments.on_duplicate,
      {OnDuplicate::refuse, OnDuplicate::replace, OnDuplicate::keep},
      "What to do with ids that the index has already: refuse all vectors, replace the old ones, or keep "
      "them");
  add_context_options(parser, arguments.context);
}

void add_index_remove(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_remove, "remove", "Remove vectors from an index by their ids",
                  "  nearwise index remove index.nw ids.txt -o index.nw\n\n"
                  "Ids that the index does not have are ignored.");
  add_path(parser, "index", arguments.index, "Index: .nw")->required();
  add_path(parser, "ids", arguments.ids, "Ids to remove: .npy .ivecs .ibin, or .txt with one per line")
      ->required();
  add_output(parser, arguments.output, "Index to write: .nw, may be the input");
  add_context_options(parser, arguments.context);
}

void add_index_merge(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_merge, "merge", "Merge indexes that share one training",
                  "  nearwise index merge part1.nw part2.nw part3.nw -o index.nw\n\n"
                  "Make the parts by index build --train-only, then index add --first-id for each.");
  add_paths(parser, "indexes", arguments.indexes, "Indexes: .nw")->required();
  add_output(parser, arguments.output, "Index to write: .nw, may be one of the inputs");
  add_context_options(parser, arguments.context);
}

void add_index_calibrate(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_calibrate, "calibrate",
      "Choose the default probes and candidates, or the beam, of an index for a target recall",
      "  nearwise index calibrate index.nw --target-recall 0.95 -o index.nw\n\n"
      "Sets the cheapest defaults that reach the target on vectors of the index, compared with exact "
      "search;\n"
      "no vector counts as its own neighbour. index build calibrates; repeat it after many additions.");
  add_path(parser, "index", arguments.index, "Index: .nw")->required();
  add_path(parser, "vectors", arguments.vectors,
           "Vectors by id, for an index that keeps none: .npy .fbin ...");
  add_output(parser, arguments.output, "Index to write: .nw, may be the input");
  add_target_recall(
      parser, arguments.target_recall,
      "Recall to reach, for k of 1, 10 and --largest-k (default: 0.9; graphs: 0.95, for 10 and 100)");
  add_count(parser, "--largest-k", arguments.largest_k, 1, "Largest k to calibrate for (default: 100)");
  add_count(parser, "--queries", arguments.queries, 1,
            "Vectors of the index used as queries, drawn at random (default: 500; graphs: 1000)");
  parser.add_flag("--no-rerank", arguments.no_rerank, "Calibrate for searches with --codes-only");
  add_seed(parser, arguments.seed);
  add_context_options(parser, arguments.context);
}

}  // namespace nearwise::cli

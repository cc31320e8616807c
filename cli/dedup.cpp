// nearwise dedup: the vectors that stay when near-duplicates are removed.
#include <algorithm>
#include <optional>
#include <vector>

#include "cli/commands.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/work.h"
#include "nearwise/dedup.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {
namespace {

struct DedupArguments {
  std::filesystem::path rows;
  std::filesystem::path output;
  std::filesystem::path groups_output;
  std::filesystem::path removed_by_output;
  std::filesystem::path scores;
  std::optional<double> similarity;
  std::optional<double> radius;
  std::optional<Metric> metric;
  DuplicateGrouping grouping = DuplicateGrouping::star;
  KeptRow keep = KeptRow::first;
  ContextArguments context;
};

Metric metric_of(const DedupArguments& arguments) {
  return arguments.metric.value_or(arguments.similarity ? Metric::cosine : Metric::sqeuclidean);
}

float threshold_of(const Session& session, const DedupArguments& arguments) {
  if (arguments.similarity.has_value() == arguments.radius.has_value())
    refuse(session, "expected --similarity or --radius, one of the two");
  return arguments.radius ? static_cast<float>(*arguments.radius)
                          : threshold_of_similarity(metric_of(arguments), *arguments.similarity);
}

std::vector<double> read_scores(const Session& session, const DedupArguments& arguments, std::size_t rows) {
  if (arguments.scores.empty()) return {};
  const VectorFile file = open_vectors(arguments.scores);
  const RowsView values = file.rows();
  if (values.type() != ElementType::f32 || values.dim() != 1 || values.rows() != rows)
    refuse(session, "'{}': {} vectors of one f32 element expected, got {} of {} {}",
           arguments.scores.string(), rows, values.rows(), values.dim(), name(values.type()));
  std::vector<double> scores(rows);
  for (std::size_t i = 0; i < rows; ++i) scores[i] = *reinterpret_cast<const float*>(values.row(i));
  return scores;
}

void check_outputs(const Session& session, const DedupArguments& arguments) {
  for (const std::filesystem::path& output :
       {arguments.output, arguments.groups_output, arguments.removed_by_output}) {
    if (output.empty()) continue;
    require_suffix_for(Content::neighbors, output);
    if (output == arguments.output && (output.extension() == ".nw" || output.extension() == ".bin"))
      refuse(session, "row numbers must go to .npy, .ivecs or .ibin, got '{}'", output.string());
    check_output(session, output, {arguments.rows, arguments.scores});
  }
}

Matrix<Id> column_of(const std::vector<Id>& ids) {
  Matrix<Id> column(ids.size(), 1);
  std::ranges::copy(ids, column.data());
  return column;
}

void write_results(const Session& session, const DedupArguments& arguments, const Deduplication& found,
                   const Provenance& provenance) {
  const Interrupt::Protection protection = session.interrupt->protect();
  write_neighbors(arguments.output, {column_of(found.kept), {}});
  const auto write_rows = [&](const std::filesystem::path& path, const std::vector<Id>& ids) {
    if (path.empty()) return;
    Neighbors rows = {column_of(ids), Matrix<float>(ids.size(), 1)};
    std::ranges::copy(found.distances, rows.distances.data());
    write_result(path, metric_of(arguments), provenance, std::move(rows));
  };
  write_rows(arguments.groups_output, found.groups);
  write_rows(arguments.removed_by_output, found.removed_by);
}

ExitCode run_dedup(Session& session, const DedupArguments& arguments) {
  const float threshold = threshold_of(session, arguments);
  check_outputs(session, arguments);
  const VectorFile file = open_vectors(arguments.rows);
  const RowsView rows = file.rows();
  Provenance provenance = describe_run(session);
  provenance["base"] = describe_input(arguments.rows, rows);
  const std::vector<double> scores = read_scores(session, arguments, rows.rows());
  const DedupOptions options = {.metric = metric_of(arguments),
                                .grouping = arguments.grouping,
                                .keep = scores.empty() ? arguments.keep : KeptRow::scored,
                                .scores = scores};
  const Context context = open_context(arguments.context);
  Work work(session, context);
  const Stopwatch watch;
  const Deduplication found =
      work.run_on_data([&](const Context& own) { return dedup(own, rows, threshold, options); });
  const double seconds = watch.seconds();
  write_results(session, arguments, found, provenance);
  Json json = {{"rows", rows.rows()},
               {"dim", rows.dim()},
               {"kept", found.kept.size()},
               {"pairs", found.pairs},
               {"threshold", threshold},
               {"metric", name(options.metric)},
               {"grouping", name(options.grouping)},
               {"keep", name(options.keep)},
               {"seconds", seconds},
               {"output", arguments.output.string()}};
  json.update(describe_context(context));
  conclude(session, json,
           fmt::format("wrote {}: {} of {} vectors stay, {} pairs of duplicates, {:.3g} s",
                       arguments.output.string(), found.kept.size(), rows.rows(), found.pairs, seconds));
  return ExitCode::ok;
}

}  // namespace

void add_dedup(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_dedup, "dedup", "Remove near-duplicate vectors",
      "  nearwise dedup vectors.fbin --similarity 0.95 -o kept.npy\n"
      "  nearwise dedup vectors.u8bin --radius 2500 --keep medoid -o kept.npy --removed-by removed.nw\n\n"
      "Compares all pairs of vectors: none within the threshold is missed. With --grouping star every\n"
      "removed vector is a duplicate of a kept one; with connected, groups are the connected\n"
      "components of the pairs, and one vector of each is kept.");
  add_path(parser, "vectors", arguments.rows, "Vectors: .npy .fbin .fvecs .u8bin ...")->required();
  CLI::Option* const similarity =
      add_number(parser, "--similarity", arguments.similarity,
                 "Smallest similarity of duplicates; for cosine, the default metric then, and inner_product");
  add_number(parser, "--radius", arguments.radius,
             "Largest distance of duplicates, in the unit of the metric")
      ->excludes(similarity);
  add_choice(parser, "--metric", arguments.metric, all_metrics, "Metric; default with --radius: sqeuclidean");
  CLI::Option* const keep =
      add_choice(parser, "--keep", arguments.keep, std::vector{KeptRow::first, KeptRow::medoid},
                 "Vector of a group that is kept: the first, or the one with the most duplicates");
  add_path(parser, "--scores", arguments.scores, "Keep the vector with the highest score: one f32 for each")
      ->excludes(keep);
  add_choice(parser, "--grouping", arguments.grouping,
             std::vector{DuplicateGrouping::star, DuplicateGrouping::connected},
             "What a group of duplicates is");
  add_output(parser, arguments.output, "Write the row numbers of the kept vectors: .npy, .ivecs or .ibin");
  add_path(parser, "--groups", arguments.groups_output,
           "Write the kept row of every vector's group; .nw and .bin with the distances of --removed-by");
  add_path(parser, "--removed-by", arguments.removed_by_output,
           "Write the duplicate that removed each vector, -1 for none; .nw and .bin with its distance");
  add_context_options(parser, arguments.context);
}

}  // namespace nearwise::cli

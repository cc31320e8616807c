// nearwise dedup, in memory and over files, and plan dedup: the vectors that stay when near-duplicates are
// removed.
#include <algorithm>
#include <optional>
#include <vector>

#include "cli/commands.h"
#include "cli/duplicates/threshold_options.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/text.h"
#include "nearwise/dedup.h"
#include "nearwise/plan_join.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {
namespace {

struct DedupArguments : ThresholdArguments {
  std::filesystem::path groups_output;
  std::filesystem::path removed_by_output;
  std::filesystem::path scores;
  DuplicateGrouping grouping = DuplicateGrouping::star;
  KeptRow keep = KeptRow::first;

  // Whether row numbers are written to files of their own.
  bool has_columns() const {
    return !is_container(output) || !groups_output.empty() || !removed_by_output.empty();
  }
};

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

// The file that the plan publishes: the output, or one in the work folder that row numbers are taken from.
std::filesystem::path published(const DedupArguments& arguments) {
  return is_container(arguments.output) ? arguments.output : arguments.work.folder / "dedup.nw";
}

void check_dedup_outputs(const Session& session, const DedupArguments& arguments) {
  for (const std::filesystem::path& output :
       {arguments.output, arguments.groups_output, arguments.removed_by_output}) {
    if (output.empty()) continue;
    require_suffix_for(Content::neighbors, output);
    if (output == arguments.output && suffix_text(output) == ".bin")
      refuse(session, "row numbers must go to .npy, .ivecs or .ibin, or everything to .nw, got '{}'",
             output.string());
    check_output(session, output, {arguments.rows, arguments.scores});
  }
  check_outputs_differ(session, {arguments.output, arguments.groups_output, arguments.removed_by_output});
  if (!arguments.work.folder.empty())
    check_outputs_differ(session,
                         {published(arguments), arguments.groups_output, arguments.removed_by_output});
}

Matrix<Id> column_of(const std::vector<Id>& ids) {
  Matrix<Id> column(ids.size(), 1);
  std::ranges::copy(ids, column.data());
  return column;
}

// Protects the writes alone: Ctrl-C ends the process at once while a column is made.
void write_columns(const Session& session, const DedupArguments& arguments, const Deduplication& found,
                   const Provenance& provenance) {
  if (!is_container(arguments.output)) {
    const Neighbors kept = {column_of(found.kept), {}};
    const Interrupt::Protection protection = session.interrupt->protect();
    write_neighbors(arguments.output, kept);
  }
  const auto write_rows = [&](const std::filesystem::path& path, const std::vector<Id>& ids) {
    if (path.empty()) return;
    Neighbors rows = {column_of(ids), Matrix<float>(ids.size(), 1)};
    std::ranges::copy(found.distances, rows.distances.data());
    const Interrupt::Protection protection = session.interrupt->protect();
    write_result(path, arguments.metric_or_default(), provenance, std::move(rows));
  };
  write_rows(arguments.groups_output, found.groups);
  write_rows(arguments.removed_by_output, found.removed_by);
}

struct FoundCounts {
  std::size_t kept = 0;
  std::size_t pairs = 0;
};

FoundCounts dedup_in_memory(Session& session, const Context& context, const DedupArguments& arguments,
                            float threshold, const RowsView& rows, const DedupOptions& options) {
  SavedDeduplication saved = {.deduplication = {},
                              .metric = options.metric,
                              .threshold = threshold,
                              .grouping = options.grouping,
                              .keep = options.keep,
                              .provenance = describe_run(session)};
  saved.provenance["base"] = describe_input(arguments.rows, rows);
  Work work(session, context);
  saved.deduplication =
      work.run_on_data([&](const Context& own) { return dedup(own, rows, threshold, options); });
  if (is_container(arguments.output)) {
    const Interrupt::Protection protection = session.interrupt->protect();
    save(saved, arguments.output);
  }
  write_columns(session, arguments, saved.deduplication, saved.provenance);
  return {saved.deduplication.kept.size(), saved.deduplication.pairs};
}

// The options that the result depends on. Scores count by their values.
std::string command_of(const DedupArguments& arguments) {
  return fmt::format("nearwise dedup {} --grouping {}{}", arguments.text(), name(arguments.grouping),
                     arguments.scores.empty() ? fmt::format(" --keep {}", name(arguments.keep))
                                              : " --scores " + quote(arguments.scores.string()));
}

Plan make_dedup_plan(const Session& session, const Context& context, const DedupArguments& arguments,
                     float threshold, const DedupOptions& options) {
  return plan_dedup(
      context, {.vectors = arguments.rows, .work = arguments.work.folder, .output = published(arguments)},
      threshold,
      {.dedup = options,
       .provenance = describe_planned_join(session, arguments, command_of(arguments)),
       .method = arguments.method_or_default()});
}

// Also writes the row numbers.
FoundCounts run_dedup_plan(Session& session, const Plan& plan, const Context& context,
                           const DedupArguments& arguments, Json& json) {
  run_join_plan(session, plan, context, arguments, json);
  if (arguments.has_columns()) {
    const SavedDeduplication saved = load_deduplication(published(arguments));
    write_columns(session, arguments, saved.deduplication, saved.provenance);
  }
  const ContainerInfo info = inspect(published(arguments));
  FoundCounts found = {.kept = 0, .pairs = std::stoull(info.metadata.at("pairs"))};
  for (const SectionInfo& section : info.sections)
    if (section.name == "kept") found.kept = section.rows;
  return found;
}

DedupOptions options_of(const DedupArguments& arguments, const std::vector<double>& scores) {
  return {.metric = arguments.metric_or_default(),
          .grouping = arguments.grouping,
          .keep = scores.empty() ? arguments.keep : KeptRow::scored,
          .scores = scores};
}

ExitCode run_dedup(Session& session, const DedupArguments& arguments) {
  const float threshold = arguments.threshold(session);
  arguments.check_method(session);
  check_dedup_outputs(session, arguments);
  const VectorFile file = open_vectors(arguments.rows);
  const RowsView rows = file.rows();
  const std::vector<double> scores = read_scores(session, arguments, rows.rows());
  const DedupOptions options = options_of(arguments, scores);
  const Context context = open_context(arguments.context);
  const Stopwatch watch;
  Json json = {{"rows", rows.rows()}, {"dim", rows.dim()}};
  const FoundCounts found =
      arguments.work.folder.empty()
          ? dedup_in_memory(session, context, arguments, threshold, rows, options)
          : run_dedup_plan(session, make_dedup_plan(session, context, arguments, threshold, options), context,
                           arguments, json);
  const double seconds = watch.seconds();
  json.update({{"kept", found.kept},
               {"pairs", found.pairs},
               {"threshold", threshold},
               {"metric", name(options.metric)},
               {"grouping", name(options.grouping)},
               {"keep", name(options.keep)},
               {"seconds", seconds},
               {"output", arguments.output.string()}});
  json.update(describe_context(context));
  conclude(session, json,
           fmt::format("wrote {}: {} of {} vectors stay, {} pairs of duplicates, {:.3g} s",
                       arguments.output.string(), found.kept, rows.rows(), found.pairs, seconds));
  return ExitCode::ok;
}

ExitCode run_plan_dedup(Session& session, const DedupArguments& given) {
  DedupArguments arguments = given;
  if (arguments.output.empty()) arguments.output = arguments.work.folder / "kept.npy";
  const float threshold = arguments.threshold(session);
  const std::vector<double> scores =
      read_scores(session, arguments, open_vectors(arguments.rows).rows().rows());
  const Context context = open_context(arguments.context);
  const Plan plan = make_dedup_plan(session, context, arguments, threshold, options_of(arguments, scores));
  return print_plan(session, plan, context, arguments.work.folder, notes_of(plan));
}

// Of the run and of its plan.
void add_dedup_options(CLI::App& parser, DedupArguments& arguments) {
  add_threshold_options(parser, arguments);
  CLI::Option* const keep =
      add_choice(parser, "--keep", arguments.keep, std::vector{KeptRow::first, KeptRow::medoid},
                 "Vector of a group that is kept: the first, or the one with the most duplicates");
  add_path(parser, "--scores", arguments.scores,
           "Scores, one f32 per vector: keep the one with the highest of each group")
      ->excludes(keep);
  add_choice(parser, "--grouping", arguments.grouping,
             std::vector{DuplicateGrouping::star, DuplicateGrouping::connected},
             "How duplicates form groups");
}

}  // namespace

void add_dedup(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_dedup, "dedup", "Remove near-duplicate vectors",
      "  nearwise dedup vectors.fbin --similarity 0.95 -o kept.npy\n"
      "  nearwise dedup vectors.u8bin --radius 2500 --keep medoid -o kept.npy --removed-by removed.nw\n"
      "  nearwise dedup vectors.fbin --similarity 0.95 --memory-limit 2GiB --work work -o dedup.nw\n\n"
      "No pair of duplicates is missed, whatever the method. With --grouping star every\n"
      "removed vector is a duplicate of a kept one; with connected, groups are the connected\n"
      "components of the pairs, and one vector of each is kept.");
  add_dedup_options(parser, arguments);
  add_output(parser, arguments.output,
             "Write the row numbers of the kept vectors: .npy, .ivecs or .ibin; or everything: .nw");
  add_path(parser, "--groups", arguments.groups_output,
           "Write the kept row of every vector's group; .nw and .bin with the distances of --removed-by");
  add_path(parser, "--removed-by", arguments.removed_by_output,
           "Write the duplicate that removed each vector, -1 for none; .nw and .bin with its distance");
  add_work_options(parser, arguments.work);
}

void add_plan_dedup(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_plan_dedup, "dedup", "Tasks, bytes, memory and time of dedup --work",
      "  nearwise plan dedup vectors.fbin --similarity 0.95 --memory-limit 2GiB --work /disk/work\n\n"
      "Time and number of pairs are estimated on a sample, at least one pair for each vector.\n"
      "Fails if memory or disk do not suffice.");
  add_dedup_options(parser, arguments);
  add_plan_options(parser, arguments.output, arguments.work, "Output", "run", "kept.npy");
}

}  // namespace nearwise::cli

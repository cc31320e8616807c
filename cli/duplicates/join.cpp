// nearwise join, in memory and over files, and plan join: all pairs of vectors within a threshold.
#include "cli/commands.h"
#include "cli/duplicates/threshold_options.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "nearwise/dedup.h"
#include "nearwise/plan_join.h"

namespace nearwise::cli {
namespace {

Plan make_join_plan(const Session& session, const Context& context, const ThresholdArguments& arguments) {
  require_container(arguments.output, "pairs");
  const float threshold = arguments.threshold(session);
  return plan_threshold_join(
      context, {.vectors = arguments.rows, .work = arguments.work.folder, .output = arguments.output},
      threshold,
      {.metric = arguments.metric_or_default(),
       .provenance = describe_planned_join(session, arguments, "nearwise join " + arguments.text()),
       .method = arguments.method_or_default()});
}

ExitCode run_plan_join(Session& session, const ThresholdArguments& given) {
  ThresholdArguments arguments = given;
  if (arguments.output.empty()) arguments.output = arguments.work.folder / "pairs.nw";
  const Context context = open_context(arguments.context);
  const Plan plan = make_join_plan(session, context, arguments);
  return print_plan(session, plan, context, arguments.work.folder, notes_of(plan));
}

// Saves the pairs. Returns how many there are.
std::size_t join_in_memory(Session& session, const Context& context, const ThresholdArguments& arguments,
                           float threshold) {
  const VectorFile file = open_vectors(arguments.rows);
  SavedPairs saved = {.pairs = {},
                      .metric = arguments.metric_or_default(),
                      .threshold = threshold,
                      .provenance = describe_run(session)};
  saved.provenance["base"] = describe_input(arguments.rows, file.rows());
  Work work(session, context);
  saved.pairs = work.run_on_data([&](const Context& own) {
    return threshold_join(own, file.rows(), threshold, {.metric = saved.metric});
  });
  const Interrupt::Protection protection = session.interrupt->protect();
  save(saved, arguments.output);
  return saved.pairs.ids.size();
}

ExitCode run_join(Session& session, const ThresholdArguments& arguments) {
  const float threshold = arguments.threshold(session);
  arguments.check_method(session);
  require_container(arguments.output, "pairs");
  check_output(session, arguments.output, {arguments.rows});
  const Context context = open_context(arguments.context);
  const Stopwatch watch;
  Json json = {{"threshold", threshold}, {"metric", name(arguments.metric_or_default())}};
  std::size_t pairs = 0;
  if (arguments.work.folder.empty()) {
    pairs = join_in_memory(session, context, arguments, threshold);
  } else {
    const Plan plan = make_join_plan(session, context, arguments);
    run_join_plan(session, plan, context, arguments, json);
    for (const SectionInfo& section : inspect(arguments.output).sections)
      if (section.name == "ids") pairs = section.rows;
  }
  json.update({{"pairs", pairs}, {"seconds", watch.seconds()}, {"output", arguments.output.string()}});
  json.update(describe_context(context));
  conclude(session, json,
           fmt::format("wrote {}: {} pairs, {:.3g} s", arguments.output.string(), pairs, watch.seconds()));
  return ExitCode::ok;
}

}  // namespace

void add_join(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_join, "join", "Find all pairs of vectors within a threshold",
                  "  nearwise join vectors.fbin --similarity 0.95 -o pairs.nw\n"
                  "  nearwise join vectors.fbin --radius 2500 --memory-limit 2GiB --work work -o pairs.nw\n\n"
                  "No pair within the threshold is missed, whatever the method.");
  add_threshold_options(parser, arguments);
  add_output(parser, arguments.output, "Pairs to write: .nw");
  add_work_options(parser, arguments.work);
}

void add_plan_join(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_plan_join, "join", "Tasks, bytes, memory and time of join --work",
      "  nearwise plan join vectors.fbin --similarity 0.95 --memory-limit 2GiB --work /disk/work\n\n"
      "Time and number of pairs are estimated on a sample, at least one pair for each vector.\n"
      "Fails if memory or disk do not suffice.");
  add_threshold_options(parser, arguments);
  add_plan_options(parser, arguments.output, arguments.work, "Pairs", "join", "pairs.nw");
}

}  // namespace nearwise::cli

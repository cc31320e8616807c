// nearwise plan index, and index build --work, which runs the plan.
#include "cli/commands.h"
#include "cli/index/build_options.h"
#include "cli/index/index_file.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/text.h"

namespace nearwise::cli {
namespace {

// The options that the index depends on.
std::string command_of(const IndexBuildArguments& arguments) {
  std::string command = fmt::format("nearwise index build {}", quote(arguments.base.string()));
  const auto append = [&](const char* option, const auto& value) {
    if (value) command += fmt::format(" {} {}", option, *value);
  };
  if (arguments.kind == "graph") {
    command += " --kind graph";
    append("--degree", arguments.degree);
  } else {
    command += " --codec " + arguments.codec;
    append("--lists", arguments.lists);
    append("--code-bytes", arguments.code_bytes);
    append("--bits", arguments.bits);
    append("--training-rows", arguments.training_rows);
    command += fmt::format(" --vectors {} --iterations {}", name(arguments.vectors), arguments.iterations);
  }
  return command + fmt::format(" --metric {} --target-recall {} --seed {} --memory-limit {} --work",
                               name(arguments.metric), target_recall_of(arguments), arguments.seed,
                               arguments.context.memory_limit);
}

Plan make_plan(const Session& session, const Context& context, const IndexBuildArguments& arguments) {
  if (arguments.context.memory_limit == 0) refuse(session, "a build over files needs --memory-limit");
  if (arguments.probes)
    refuse(session, "--probes cannot be combined with --work: a build over files is calibrated");
  std::string described;
  {
    const VectorFile file = open_vectors(arguments.base);
    if (arguments.kind == "graph")
      check_graph_index_build(session, arguments);
    else
      check_index_build(session, arguments, file.rows());
    described = describe_input(arguments.base, file.rows());
  }
  const Provenance provenance = describe_planned_run(command_of(arguments), described);
  const PlanFiles files = {
      .vectors = arguments.base, .work = arguments.work.folder, .output = arguments.output};
  if (arguments.kind == "graph")
    return plan_graph_index(context, files,
                            {.index = graph_index_options(arguments),
                             .calibration = {.target_recall = target_recall_of(arguments)},
                             .provenance = provenance});
  return plan_index(context, files,
                    {.index = index_options(arguments),
                     .calibration = {.target_recall = target_recall_of(arguments)},
                     .provenance = provenance});
}

ExitCode run_plan_index(Session& session, const IndexBuildArguments& given) {
  IndexBuildArguments arguments = given;
  if (arguments.output.empty()) arguments.output = arguments.work.folder / "index.nw";
  const Context context = open_context(arguments.context, arguments.seed);
  return print_plan(session, make_plan(session, context, arguments), context, arguments.work.folder);
}

}  // namespace

ExitCode run_planned_index_build(Session& session, const IndexBuildArguments& arguments) {
  check_index_output(arguments.output);
  check_output(session, arguments.output, {arguments.base});
  const Stopwatch watch;
  const Context context = open_context(arguments.context, arguments.seed);
  const Plan plan = make_plan(session, context, arguments);
  const Json run = run_plan(session, plan, context, arguments.work);
  Json more = {{"seed", arguments.seed}, {"seconds", watch.seconds()}};
  more.update(run);
  more.update(describe_context(context));
  if (arguments.kind == "graph")
    return report_graph_index(session, load_graph_index(context, arguments.output), arguments.output, more,
                              watch.seconds());
  const Ivf index = open_inverted_file(context, arguments.output);
  return report_index(session, index, arguments.output, more,
                      fmt::format("{} bytes per vector, {:.3g} s", index.code_bytes(), watch.seconds()));
}

void add_plan_index(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_plan_index, "index", "Tasks, bytes, memory and time of index build --work",
      "  nearwise plan index base.fbin --memory-limit 2GiB --code-bytes 16 --work /disk/work\n"
      "  nearwise plan index base.fbin --memory-limit 2GiB --kind graph --work /disk/work\n\n"
      "Times are estimated from a short measurement on this machine. Fails if memory or disk do not "
      "suffice.");
  add_index_build_options(parser, arguments);
  add_plan_options(parser, arguments.output, arguments.work, "Index", "build", "index.nw");
}

}  // namespace nearwise::cli

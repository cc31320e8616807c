// nearwise plan index, and build --work, which does it.
#include <fmt/format.h>

#include "cli/index/index_arguments.h"
#include "cli/plan_report.h"
#include "cli/shared/files.h"
#include "cli/shared/index_file.h"
#include "nearwise/machine.h"

namespace nearwise::cli {
namespace {

std::variant<IvfPqOptions, IvfFlatOptions, IvfLsqOptions> training_of(const IndexBuildArguments& arguments) {
  const auto common = [&](auto options) {
    options.metric = parse_metric(arguments.metric);
    options.lists = arguments.lists;
    options.iterations = arguments.iterations;
    options.rows_per_list = arguments.rows_per_list;
    return options;
  };
  if (arguments.codec == "flat") return common(IvfFlatOptions());
  if (arguments.codec == "lsq") {
    IvfLsqOptions options = common(IvfLsqOptions());
    if (arguments.code_bytes != 0) options.code_bytes = arguments.code_bytes;
    return options;
  }
  IvfPqOptions options = common(IvfPqOptions());
  options.code_bytes = arguments.code_bytes;
  options.bits = static_cast<unsigned>(arguments.bits);
  return options;
}

Plan make_plan(const std::string& command, const Context& context, const IndexBuildArguments& arguments) {
  if (arguments.machine.memory == 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: work over files needs --memory", command));
  std::string described;
  {
    const VectorFile file = open_vectors(arguments.base);
    check_index_arguments(arguments, file.rows());
    described = describe_input(arguments.base, file.rows());
  }
  // Neither time nor command: whoever goes on with a build leaves the bytes of one that was never stopped.
  return plan_index(context, {.vectors = arguments.base, .work = arguments.work, .output = arguments.output},
                    {.training = training_of(arguments),
                     .measure = {.recall = arguments.recall},
                     .provenance = {{"base", described}}});
}

ExitCode run_plan_index(Session& session, const IndexBuildArguments& arguments) {
  const Context context = open_silent_context(arguments.machine, arguments.seed);
  const Plan plan = make_plan("plan index", context, arguments);
  plan.check_disk();
  tell_plan(session, plan);
  return ExitCode::ok;
}

}  // namespace

ExitCode run_planned_build(Session& session, const IndexBuildArguments& arguments) {
  check_index_output(arguments.output);
  check_output("build", arguments.output, {arguments.base});
  const Clock::time_point start = Clock::now();
  ProgressBar bar(choose_progress_style(session.quiet), "build");
  const Context context = open_context(arguments.machine, bar, arguments.seed);
  const Plan plan = make_plan("build", context, arguments);
  TaskLog log(session, bar);
  run_tasks(session, plan, context, log);
  bar.finish();
  session.interrupt->check();
  const std::string left = remove_work(plan, arguments.work, arguments.keep_work);
  const Ivf index = open_index(context, arguments.output);
  Json json = describe_index(index, arguments.output);
  json.update({{"seed", arguments.seed},
               {"seconds", seconds_since(start)},
               {"tasks", log.json()},
               {"work", arguments.work.string()},
               {"threads", context.threads()},
               {"memory_peak_bytes", context.memory_peak()}});
  if (log.done_before() != 0)
    remark(session, fmt::format("{} tasks had been done before", log.done_before()));
  tell_of_index(session, json, index, arguments.output,
                fmt::format("{} bytes a row, {:.3g} s; {}", index.code_bytes(), seconds_since(start), left));
  return ExitCode::ok;
}

void add_plan_of_index(CLI::App& plan, Session& session) {
  auto arguments = std::make_shared<IndexBuildArguments>();
  arguments->work = ".";
  CLI::App* const command =
      add_command(plan, session, "index", "Tasks, bytes, memory and time of build --work",
                  "  nearwise plan index base.fbin --memory 2GiB --code-bytes 16 --work /disk/work\n\n"
                  "Times are from a search of a few milliseconds on this machine. Refused where memory or "
                  "disk will not do.");
  const std::function<void()> check = add_index_options(*command, *arguments);
  add_path(*command, "-o,--output", arguments->output,
           "Where the index will go: .nw (index.nw in the work folder)");
  add_path(*command, "--work", arguments->work, "The folder of the work (.)");
  command->callback([&session, arguments, check] {
    check();
    if (arguments->output.empty()) arguments->output = arguments->work / "index.nw";
    session.run = [&session, arguments] { return run_plan_index(session, *arguments); };
  });
}

}  // namespace nearwise::cli

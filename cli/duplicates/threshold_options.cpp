#include "cli/duplicates/threshold_options.h"

#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/text.h"
#include "nearwise/dedup.h"

namespace nearwise::cli {
namespace {

Json describe_method(const JoinPlanReport& report) {
  const auto found = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  return {{"method", name(report.method)},
          {"guarantee", "complete"},
          {"partitions", report.partitions},
          {"predicted_copies", report.predicted_copies},
          {"predicted_comparisons", report.predicted_comparisons},
          {"copies", found(report.copies)},
          {"comparisons", found(report.comparisons)}};
}

std::string method_line(const JoinPlanReport& report) {
  if (report.method == JoinMethod::pairs)
    return fmt::format("Complete by all pairs: {:.3g} comparisons.", report.predicted_comparisons);
  std::string line =
      fmt::format("Complete by {} partitions: {:.3g} copies per vector and {:.3g} comparisons predicted",
                  report.partitions, report.predicted_copies, report.predicted_comparisons);
  if (report.copies && report.comparisons)
    line += fmt::format(", {:.3g} and {:.3g} found", *report.copies, *report.comparisons);
  return line + ".";
}

}  // namespace

float ThresholdArguments::threshold(const Session& session) const {
  if (similarity.has_value() == radius.has_value())
    refuse(session, "expected --similarity or --radius, one of the two");
  return radius ? static_cast<float>(*radius) : threshold_of_similarity(metric_or_default(), *similarity);
}

void ThresholdArguments::check_method(const Session& session) const {
  if (method && work.folder.empty()) refuse(session, "--method is for a run over files, which needs --work");
}

std::string ThresholdArguments::text() const {
  return fmt::format("{} {} {} --metric {}", quote(rows.string()), radius ? "--radius" : "--similarity",
                     radius ? *radius : similarity.value_or(0), name(metric_or_default()));
}

PlanNotes notes_of(const Plan& plan) {
  const JoinPlanReport report = plan.join_report();
  return {.json = describe_method(report), .line = method_line(report)};
}

void run_join_plan(Session& session, const Plan& plan, const Context& context,
                   const ThresholdArguments& arguments, Json& json) {
  const auto note = [&] {
    const PlanNotes notes = notes_of(plan);
    json.update(notes.json);
    remark(session, notes.line);
  };
  json.update(run_plan(session, plan, context, arguments.work, note));
}

void add_threshold_options(CLI::App& parser, ThresholdArguments& arguments) {
  add_path(parser, "vectors", arguments.rows, "Vectors: .npy .fbin .fvecs .u8bin ...")->required();
  CLI::Option* const similarity =
      add_number(parser, "--similarity", arguments.similarity,
                 "Smallest similarity of duplicates, for --metric cosine (its default) or inner_product");
  add_number(parser, "--radius", arguments.radius,
             "Largest distance of duplicates, in the unit of the metric")
      ->excludes(similarity);
  add_choice(parser, "--metric", arguments.metric, all_metrics, "Metric; default with --radius: sqeuclidean");
  add_choice(
      parser, "--method", arguments.method,
      {JoinMethod::automatic, JoinMethod::partitions, JoinMethod::pairs},
      "With --work: partitions with copies of the vectors near their borders, or all pairs of blocks; both "
      "find every pair (default: auto, the one that is predicted to cost less)");
  add_context_options(parser, arguments.context);
}

Provenance describe_planned_join(const Session& session, const ThresholdArguments& arguments,
                                 const std::string& command) {
  if (arguments.context.memory_limit == 0) refuse(session, "work over files needs --memory-limit");
  const VectorFile file = open_vectors(arguments.rows);
  return describe_planned_run(command, describe_input(arguments.rows, file.rows()));
}

}  // namespace nearwise::cli

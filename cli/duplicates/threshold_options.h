// Which vectors are duplicates: options of join and dedup.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/shared/planned_work.h"
#include "cli/shared/session.h"
#include "cli/shared/work.h"
#include "nearwise/plan_join.h"
#include "nearwise/types.h"

namespace nearwise::cli {

struct ThresholdArguments {
  std::filesystem::path rows;
  std::filesystem::path output;
  WorkArguments work;
  std::optional<double> similarity;
  std::optional<double> radius;
  std::optional<Metric> metric;
  std::optional<JoinMethod> method;  // of a run over files; none: automatic
  ContextArguments context;

  Metric metric_or_default() const {
    return metric.value_or(similarity ? Metric::cosine : Metric::sqeuclidean);
  }
  // Of reported distances. Refuses both of radius and similarity, and neither.
  float threshold(const Session& session) const;
  // Refuses a method of a run in memory.
  void check_method(const Session& session) const;
  JoinMethod method_or_default() const { return method.value_or(JoinMethod::automatic); }
  // The options that a result depends on, as typed.
  std::string text() const;
};

// How a plan finds the pairs.
PlanNotes notes_of(const Plan& plan);
// Runs it, and adds its tasks and how it found the pairs.
void run_join_plan(Session& session, const Plan& plan, const Context& context,
                   const ThresholdArguments& arguments, Json& json);

// The vectors, and all options but --output and --work.
void add_threshold_options(CLI::App& parser, ThresholdArguments& arguments);

// What a plan of these vectors was made from. Refuses a run without a memory limit.
Provenance describe_planned_join(const Session& session, const ThresholdArguments& arguments,
                                 const std::string& command);

}  // namespace nearwise::cli

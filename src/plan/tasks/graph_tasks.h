// Adds the tasks of a graph to its plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plan/engine/plan_state.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

// Sets the name, output file and pass of each added task.
class GraphTasks {
 public:
  // input: the task that all of them depend on.
  GraphTasks(Plan::State& state, std::shared_ptr<const GraphWork> work, std::string input)
      : state_(state), work_(std::move(work)), input_(std::move(input)) {}

  const std::shared_ptr<const GraphWork>& work() const { return work_; }

  void begin_pass(std::size_t pass) { pass_ = pass; }

  // The result is for optional fields and valid until the next call.
  template <typename Function>
  Task& add(std::string name, std::vector<std::string> after, std::uint64_t memory, PlannedTask cost,
            const Function& function) {
    Task task;
    task.output = work_->file_of(name);
    task.planned = std::move(cost);
    task.planned.name = std::move(name);
    task.planned.after = std::move(after);
    // Most tasks read vectors, and those of another file must not be combined with these.
    task.planned.after.push_back(input_);
    task.planned.memory_bytes = memory;
    task.work = [work = work_, function](const Context& context) { function(context, *work); };
    if (pass_ != 0) {
      task.planned.if_needed = true;
      task.decided_by = measure_name(pass_ - 1);
      task.needed = [work = work_, pass = pass_] { return !reached(*work, pass - 1); };
    }
    state_.tasks.push_back(std::move(task));
    return state_.tasks.back();
  }

 private:
  Plan::State& state_;
  std::shared_ptr<const GraphWork> work_;
  const std::string input_;
  std::size_t pass_ = 0;
};

// A limit of at least this, within which shape_of() finds a shape.
std::uint64_t sufficient_limit(const Context& context, const RowsView& rows, const GraphPlanOptions& options,
                               std::uint64_t limit);

struct GraphCosts;  // plan/partition/graph_costs.h
// The tasks from `sample` to `measure` of all passes. Returns the names of the latter, by which last_pass()
// is known.
std::vector<std::string> add_graph_tasks(GraphTasks& tasks, const Context& context, const GraphCosts& costs);

template <typename Name>
std::vector<std::string> names(std::size_t count, const Name& name) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(name(i));
  return all;
}

}  // namespace nearwise::plan

// Steps of a scan of all rows, on one thread.
#pragma once

#include <cstddef>

#include "backend/context_state.h"
#include "core/progress.h"
#include "nearwise/context.h"

namespace nearwise::graph_index {

// Checks for cancellation at the first of 4096 steps, and reports them. The context must outlive it.
class RowScan {
 public:
  RowScan(const Context& context, std::size_t rows)
      : cancel_(context.state().cancel),
        progress_(context.state().options.progress, context.state().clock, "connect_rows", rows) {}

  void next() {
    if (steps_ % steps_per_check == 0) {
      cancel_.check();
      progress_.add(steps_ == 0 ? 0 : steps_per_check);
    }
    ++steps_;
  }

 private:
  static constexpr std::size_t steps_per_check = 4096;

  const CancelFlag& cancel_;
  ProgressMeter progress_;
  std::size_t steps_ = 0;
};

}  // namespace nearwise::graph_index

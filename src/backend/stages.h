// Progress of an operation that consists of other operations.
#pragma once

#include <cstdint>
#include <memory>

#include "nearwise/context.h"

namespace nearwise {

// Each stage is an operation that runs on a context of its own; what it reports becomes its share of the
// whole. Shares follow from expected costs, in any unit: only their ratios count.
//
//   Stages stages(context, "build");
//   train(stages.next(train_cost, add_cost), rows);
//   add(stages.next(add_cost, 0), rows);
//   stages.finish();
//
// For one thread at a time; the operations may use many.
class Stages {
 public:
  // Reports count up to this.
  static constexpr std::uint64_t total = 1'000'000;

  // `operation` is a string literal.
  Stages(const Context& context, const char* operation);

  // The context of the next stage. `rest`: the expected cost of all stages after it. Stages before count as
  // complete. Cancelling either context cancels both.
  Context next(double cost, double rest);

  // The current stage has failed: what it has not reported is shared by the stages that follow, of which one
  // may repeat it.
  void abandon();

  // Reports completion; without it (an exception) no last report is made.
  void finish();

 private:
  class Share;

  Context context_;
  std::shared_ptr<Share> share_;  // none if nobody listens
};

}  // namespace nearwise

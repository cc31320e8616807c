// The state behind a Context handle. Shared parts (threads, budget) outlive the handle that created them.
#pragma once

#include <memory>

#include "core/memory.h"
#include "core/parallel.h"
#include "core/progress.h"
#include "nearwise/context.h"

namespace nearwise {

struct Backend;

class Context::State {
 public:
  State(const Backend& backend, Place place, ContextOptions options);
  // Shares threads and budget with `parent`.
  State(const State& parent, ProgressCallback progress, CancelFlag flag);
  State& operator=(const State&) = delete;

  const Backend& backend;
  const Place place;
  const ContextOptions options;
  const Clock clock;
  const std::shared_ptr<const Threads> threads;
  const std::shared_ptr<MemoryBudget> budget;
  CancelFlag cancel;
};

}  // namespace nearwise

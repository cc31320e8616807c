// Refuses a memory limit that is too small before anything is allocated, naming a sufficient one.
#pragma once

#include <cstdint>

#include "backend/context_state.h"

namespace nearwise {

inline void check_memory(const char* operation, const Context& context, std::uint64_t needed) {
  const MemoryBudget& budget = *context.state().budget;
  if (needed > budget.available()) refuse_limit(operation, budget.limit(), budget.used() + needed);
}

}  // namespace nearwise

// Refuses a memory limit that is too small before anything is allocated, naming a sufficient one.
#pragma once

#include <cstdint>

#include "backend/context_state.h"
#include "core/check.h"

namespace nearwise {

inline void check_memory(const char* operation, const Context& context, std::uint64_t needed) {
  const MemoryBudget& budget = *context.state().budget;
  if (needed > budget.available())
    fail(ErrorCode::out_of_memory, "{}: the memory limit of {} bytes is too small, {} would suffice",
         operation, budget.limit(), budget.used() + needed);
}

}  // namespace nearwise

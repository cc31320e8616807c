// Refuses a memory limit that is too small before anything is allocated, naming a sufficient one.
#pragma once

#include <cstdint>

#include "backend/context_state.h"

namespace nearwise {

inline void check_memory(const char* operation, const Context& context, std::uint64_t needed) {
  const MemoryBudget& budget = *context.state().budget;
  if (needed > budget.available()) refuse_limit(operation, budget.limit(), budget.used() + needed);
}

// Of an operation within another: who checks the memory limit.
enum class MemoryCheck : std::uint8_t { now, by_caller };

// Whether there is any limit for a call that changes an object with a budget of its own.
inline bool is_limited(const Context& context, const MemoryBudget& own) {
  return context.state().budget->limit() != 0 || own.limit() != 0;
}
// Of such a call. kept: the part of the needed bytes that counts on the object's budget.
inline void check_memory(const char* operation, const Context& context, const MemoryBudget& own,
                         std::uint64_t kept, std::uint64_t needed) {
  check_memory(operation, context, needed);
  if (kept > own.available()) refuse_limit(operation, own.limit(), own.used() + kept);
}

}  // namespace nearwise

// Progress of a long operation.
#pragma once

#include <cstdint>
#include <functional>

#include "nearwise/export.h"

namespace NEARWISE_EXPORT nearwise {

// done counts up to total, in units that depend on the operation.
struct Progress {
  const char* operation = "";
  std::uint64_t done = 0;
  std::uint64_t total = 0;
};

// Called on any thread that works on the operation, the caller's included. Calls of one operation do not
// overlap; they come at most every 50 ms, and once when it has succeeded.
using ProgressCallback = std::function<void(const Progress&)>;

}  // namespace nearwise

// Time in tests: how much work this process has done, and how much slower a sanitizer makes it.
#pragma once

#include <ctime>

#include "support/sanitizers.h"

namespace nearwise::support {

// Processor time of all threads of this process: what else the machine does is not in it, so that a limit on
// it holds on a busy machine too.
inline double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

inline double sanitizer_slowdown() { return is_sanitized() ? 20 : 1; }

}  // namespace nearwise::support

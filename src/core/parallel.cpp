#include "core/parallel.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace nearwise {

int available_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1U, std::thread::hardware_concurrency());  // more CPUs than cpu_set_t can name
}

}  // namespace nearwise

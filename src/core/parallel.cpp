#include "core/parallel.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "core/float_environment.h"
#include "core/fork.h"

namespace nearwise {

void Threads::for_each(std::size_t tasks, const std::function<void(std::size_t)>& body) const {
  if (tasks > 1 && !in_forked_child()) return run_in_pool(tasks, body);
  const DefaultFloatEnvironment environment;
  for (std::size_t index = 0; index < tasks; ++index) body(index);
}

int available_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1U, std::thread::hardware_concurrency());  // more CPUs than cpu_set_t can name
}

}  // namespace nearwise

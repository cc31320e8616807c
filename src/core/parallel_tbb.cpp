// core/parallel.h over oneTBB: the only file that knows it.
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>

#include "core/float_environment.h"
#include "core/fork.h"
#include "core/parallel.h"

namespace nearwise {

class Threads::Pool {
 public:
  // oneTBB runs no more workers than the process has CPUs, and complains on standard error when asked to.
  explicit Pool(int count) : arena(std::min(count, tbb::info::default_concurrency())) {}
  tbb::task_arena arena;
};

Threads::Threads(int count)
    : count_(count), pool_(in_forked_child() ? nullptr : std::make_unique<Pool>(count)) {}

Threads::~Threads() {
  // The end of an arena takes locks that another thread may have held at the fork.
  if (in_forked_child()) static_cast<void>(pool_.release());
}

void Threads::run_in_pool(std::size_t tasks, const std::function<void(std::size_t)>& body) const {
  pool_->arena.execute([&] {
    // One index per task and no splitting heuristics: our tasks are large and few.
    tbb::parallel_for(
        tbb::blocked_range<std::size_t>(0, tasks, 1),
        [&](const tbb::blocked_range<std::size_t>& range) {
          const DefaultFloatEnvironment environment;
          for (std::size_t index = range.begin(); index != range.end(); ++index) body(index);
        },
        tbb::simple_partitioner());
  });
}

}  // namespace nearwise

#include "core/fork.h"

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <shared_mutex>

namespace nearwise {
namespace {

std::atomic<std::uint32_t> depth = 0;

// Never destroyed: other threads may work while the process ends.
alignas(std::shared_mutex) std::byte storage[sizeof(std::shared_mutex)];
std::shared_mutex* const sections = new (storage) std::shared_mutex;

void before() { sections->lock(); }
void after_in_parent() { sections->unlock(); }
void after_in_child() {
  // Made anew rather than unlocked: the thread that locked it had another number.
  new (storage) std::shared_mutex;
  ++depth;
}

[[maybe_unused]] const int registered = pthread_atfork(before, after_in_parent, after_in_child);

}  // namespace

std::uint32_t fork_depth() { return depth.load(std::memory_order_relaxed); }
bool in_forked_child() { return fork_depth() != 0; }

NoFork::NoFork() { sections->lock_shared(); }
NoFork::~NoFork() { sections->unlock_shared(); }

}  // namespace nearwise

#include "core/fork.h"

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <shared_mutex>

namespace nearwise {
namespace {

std::atomic<bool> forked_child = false;

// Never destroyed: other threads may work while the process ends.
alignas(std::shared_mutex) std::byte storage[sizeof(std::shared_mutex)];
std::shared_mutex* const sections = new (storage) std::shared_mutex;

void before() { sections->lock(); }
void after_in_parent() { sections->unlock(); }
void after_in_child() {
  // Made anew rather than unlocked: the thread that locked it had another number.
  new (storage) std::shared_mutex;
  forked_child = true;
}

[[maybe_unused]] const int registered = pthread_atfork(before, after_in_parent, after_in_child);

}  // namespace

bool in_forked_child() { return forked_child.load(std::memory_order_relaxed); }

NoFork::NoFork() { sections->lock_shared(); }
NoFork::~NoFork() { sections->unlock_shared(); }

}  // namespace nearwise

// An object that is made when it is first needed, by any thread, without a lock that a forked child could
// inherit.
#pragma once

#include <atomic>
#include <memory>

namespace nearwise::index {

template <typename T>
class Published {
 public:
  Published() = default;
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;
  ~Published() { delete object_.load(); }

  // Null before publish().
  T* load() const noexcept { return object_.load(std::memory_order_acquire); }
  // The first one stays; those of threads that made one at the same time are dropped.
  T& publish(std::unique_ptr<T> made) noexcept {
    T* published = nullptr;
    if (object_.compare_exchange_strong(published, made.get(), std::memory_order_acq_rel))
      return *made.release();
    return *published;
  }
  // While no other thread uses it.
  void reset() noexcept { delete object_.exchange(nullptr); }

 private:
  std::atomic<T*> object_ = nullptr;
};

}  // namespace nearwise::index

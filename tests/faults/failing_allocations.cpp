#include "faults/failing_allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "core/memory.h"

// Read by AddressSanitizer, where there is one. Shared libraries allocate by its operator new and free by
// this program's operator delete, or the reverse.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options();
const char* __asan_default_options() { return "alloc_dealloc_mismatch=0"; }

namespace nearwise::faults {
namespace {

std::atomic<bool> is_counting = false;
std::atomic<int> counted = 0;
std::atomic<bool> has_failed = false;
// Set while nobody counts.
FailingAllocations::Plan plan;

// Smaller ones are given: nlohmann::json allocates in its destructor, which may not throw, 16 bytes for every
// element of an object or array.
constexpr std::size_t least_bytes = 1024;

bool is_given(std::size_t bytes) noexcept {
  if (!is_counting.load(std::memory_order_relaxed) || bytes < least_bytes) return true;
  const int call = counted.fetch_add(1) + 1;
  const bool fails =
      plan.fail_call != 0 && (call == plan.fail_call || (plan.fail_all_after && call > plan.fail_call));
  if (fails) has_failed = true;
  return !fails;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  // Not fewer than 1: aligned_alloc may return nullptr for 0.
  const std::size_t whole = (bytes + alignment) / alignment * alignment;
  void* const data = is_given(bytes) ? std::aligned_alloc(alignment, whole) : nullptr;
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

constexpr std::size_t default_alignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

FailingAllocations::FailingAllocations(const Plan& given) {
  plan = given;
  counted = 0;
  has_failed = false;
  replace_allocation_check([](std::size_t bytes) { return is_given(bytes); });
  is_counting = true;
}

FailingAllocations::~FailingAllocations() {
  is_counting = false;
  replace_allocation_check(nullptr);
}

int FailingAllocations::calls() const { return counted; }
bool FailingAllocations::failed() const { return has_failed; }

}  // namespace nearwise::faults

// The other forms, of arrays and without exceptions, call these.
void* operator new(std::size_t bytes) {
  return nearwise::faults::allocate(bytes, nearwise::faults::default_alignment);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return nearwise::faults::allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
void operator delete(void* data, std::size_t, std::align_val_t) noexcept { std::free(data); }

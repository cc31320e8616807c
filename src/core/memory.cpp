#include "core/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/checked.h"
#include "nearwise/matrix.h"

namespace nearwise {
namespace {

constexpr std::size_t alignment = 64;
std::atomic<AllocationCheck> allocation_check{nullptr};

bool is_refused(std::size_t bytes) {
  const AllocationCheck check = allocation_check.load(std::memory_order_relaxed);
  return check != nullptr && !check(bytes);
}

// AddressSanitizer sees accesses beyond the end of malloc's memory only.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t least_mapped_bytes = std::numeric_limits<std::size_t>::max();
#else
constexpr std::size_t least_mapped_bytes = std::size_t{256} << 10;
#endif

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
  constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024; ++unit) value /= 1024;
  return fmt::format("{:g} {}", std::ceil(value * 100) / 100, units[unit]);
}

void refuse_limit(const char* operation, std::uint64_t limit, std::uint64_t sufficient) {
  fail(ErrorCode::out_of_memory, "{}: the memory limit of {} is too small, {} would suffice", operation,
       format_bytes(limit), format_bytes(sufficient));
}

void MemoryBudget::take(std::uint64_t bytes) {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (limit_ != 0 && (used > limit_ || bytes > limit_ - used))
      fail(ErrorCode::out_of_memory, "memory: {} more exceed the limit of {} ({} in use)",
           format_bytes(bytes), format_bytes(limit_), format_bytes(used));
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  const std::uint64_t now = used + bytes;
  std::uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void MemoryBudget::give_back(std::uint64_t bytes) noexcept {
  used_.fetch_sub(bytes, std::memory_order_relaxed);
}

std::uint64_t MemoryBudget::available() const {
  if (limit_ == 0) return std::numeric_limits<std::uint64_t>::max();
  return limit_ - std::min(limit_, used());
}

std::size_t buffer_bytes(std::size_t size, std::size_t element_bytes) {
  const std::size_t bytes = checked_multiply(size, element_bytes, "memory", ErrorCode::out_of_memory);
  return checked_add(bytes, alignment, "memory", ErrorCode::out_of_memory) / alignment * alignment;
}

void replace_allocation_check(AllocationCheck check) { allocation_check = check; }

void* allocate_aligned(std::size_t bytes) {
  // Rounding up must not wrap to a small allocation.
  void* data = bytes > std::numeric_limits<std::size_t>::max() - alignment || is_refused(bytes)
                   ? nullptr
                   : std::aligned_alloc(alignment, round_up(bytes, alignment));
  if (data == nullptr && bytes != 0)
    fail(ErrorCode::out_of_memory, "memory: the machine refused {} bytes", bytes);
  return data;
}

void free_aligned(void* data) noexcept { std::free(data); }

BufferMemory allocate_buffer(const MemoryBudget& budget, std::size_t bytes) {
  if (budget.limit() == 0 || bytes < least_mapped_bytes) return {.data = allocate_aligned(bytes)};
  void* const data = is_refused(bytes)
                         ? MAP_FAILED
                         : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // The number of mappings is limited, too.
  if (data == MAP_FAILED) return {.data = allocate_aligned(bytes)};
  return {.data = data, .mapped_bytes = bytes};
}

void free_buffer(const BufferMemory& memory) noexcept {
  if (memory.mapped_bytes != 0)
    munmap(memory.data, memory.mapped_bytes);
  else
    free_aligned(memory.data);
}

void use_huge_pages(void* data, std::size_t bytes) noexcept {
  constexpr std::uintptr_t page = std::uintptr_t{2} << 20;
  const std::uintptr_t begin = round_up(reinterpret_cast<std::uintptr_t>(data), page);
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(data) + bytes) / page * page;
  if (begin < end) static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));
}

void* allocate_matrix(std::size_t rows, std::size_t cols, std::size_t element_bytes) {
  return allocate_aligned(
      buffer_bytes(checked_multiply(rows, cols, "matrix", ErrorCode::out_of_memory), element_bytes));
}

void free_matrix(void* data) noexcept { free_aligned(data); }

}  // namespace nearwise

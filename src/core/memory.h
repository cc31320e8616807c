// A memory limit that is kept: a budget that counts bytes, and the buffers that draw on it.
//
// All working memory of any size is a Buffer, and results are reserved on the budget while an operation runs,
// so that memory_limit bounds their sum. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace nearwise {

// "300 B", "64 KiB", "1.5 GiB": exact where it is short, else rounded up to 2 decimals of the unit.
std::string format_bytes(std::uint64_t bytes);

// Throws Error(out_of_memory): the limit is too small, `sufficient` bytes would do.
[[noreturn]] void refuse_limit(const char* operation, std::uint64_t limit, std::uint64_t sufficient);

class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t limit = 0) : limit_(limit) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // Throws Error(out_of_memory) naming limit, use and request; then nothing was taken.
  void take(std::uint64_t bytes);
  void give_back(std::uint64_t bytes) noexcept;

  std::uint64_t limit() const { return limit_; }  // 0: none
  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  std::uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  // Bytes left; the largest number if there is no limit.
  std::uint64_t available() const;

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> peak_{0};
};

// Bytes held on a budget for memory allocated elsewhere (a result, a library's workspace).
class Reservation {
 public:
  Reservation() = default;
  Reservation(MemoryBudget& budget, std::uint64_t bytes) : budget_(&budget), bytes_(bytes) {
    budget.take(bytes);
  }
  Reservation(Reservation&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Reservation& operator=(Reservation&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Reservation() {
    if (budget_ != nullptr) budget_->give_back(bytes_);
  }

 private:
  MemoryBudget* budget_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// Uninitialised, aligned to 64 bytes (a cache line, an AVX-512 vector). Throws Error(out_of_memory).
void* allocate_aligned(std::size_t bytes);
void free_aligned(void* data) noexcept;

// For tests: whether the machine gives this much memory to allocate_aligned() and allocate_buffer(). nullptr:
// it does what it does.
using AllocationCheck = bool (*)(std::size_t bytes);
void replace_allocation_check(AllocationCheck check);

// Memory of a Buffer.
struct BufferMemory {
  void* data = nullptr;
  std::size_t mapped_bytes = 0;  // 0: by malloc
};
// Under a limit, large buffers are mapped by themselves: malloc would keep what is freed, and the process
// would occupy more than the budget counts. Throws Error(out_of_memory).
BufferMemory allocate_buffer(const MemoryBudget& budget, std::size_t bytes);
void free_buffer(const BufferMemory& memory) noexcept;

// Asks for huge pages, before the memory is first written: scattered reads of many megabytes otherwise miss
// the TLB each time. A hint, without effect where the system does not offer them.
void use_huge_pages(void* data, std::size_t bytes) noexcept;

// Counted, aligned, uninitialised host memory for `size` elements.
template <typename T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  Buffer(MemoryBudget& budget, std::size_t size);
  Buffer(Buffer&& other) noexcept
      : reservation_(std::move(other.reservation_)),
        memory_(std::exchange(other.memory_, {})),
        size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(reservation_, other.reservation_);
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() { free_buffer(memory_); }

  T* data() { return static_cast<T*>(memory_.data); }
  const T* data() const { return static_cast<const T*>(memory_.data); }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t index) { return data()[index]; }
  const T& operator[](std::size_t index) const { return data()[index]; }
  std::span<T> span() { return {data(), size_}; }
  std::span<const T> span() const { return {data(), size_}; }

 private:
  Reservation reservation_;
  BufferMemory memory_;
  std::size_t size_ = 0;
};

std::size_t buffer_bytes(std::size_t size, std::size_t element_bytes);

template <typename T>
Buffer<T>::Buffer(MemoryBudget& budget, std::size_t size)
    : reservation_(budget, buffer_bytes(size, sizeof(T))),
      memory_(allocate_buffer(budget, buffer_bytes(size, sizeof(T)))),
      size_(size) {}

}  // namespace nearwise

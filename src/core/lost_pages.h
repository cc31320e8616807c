// Mapped files that lose pages: someone truncates the file, or its disk fails. The system answers a read of
// such a page with SIGBUS, which ends the process.
//
// Mapped files are registered here. If a thread reads a lost page of one inside a LostPagesScope, the page
// reads as zeros, and check_lost_pages() throws Error(corrupt) before a result made from them is given out.
// Operations and tasks begin a scope with their DefaultFloatEnvironment; Threads::for_each, dispatch and
// AtomicFile have one, and check at their end. Every other SIGBUS goes to the handler that was installed
// before ours: code of the caller that reads a mapping by itself is stopped as it would be without nearwise.
//
// The handler is installed with the first mapping and stays. A handler that is installed later must pass on
// what it does not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "nearwise/error.h"
#include "nearwise/matrix.h"

namespace nearwise {

// This thread works for nearwise while one exists. Scopes nest; one belongs to the thread that made it.
class LostPagesScope {
 public:
  LostPagesScope() noexcept;
  ~LostPagesScope();
  LostPagesScope(const LostPagesScope&) = delete;
  LostPagesScope& operator=(const LostPagesScope&) = delete;
};

// Whether a mapped file has lost pages since this thread's outermost scope began; false outside of scopes.
// Which operation reads which file is not known: one that runs at the moment of the loss fails even if it
// reads other files, once.
bool pages_were_lost() noexcept;
// Throws Error(corrupt) if they were.
void check_lost_pages();

// The result of work() that reads mapped files. If they have lost pages, that is the error, whatever else
// work() found wrong.
template <typename Work>
auto read_mapped(const Work& work) {
  const LostPagesScope lost_pages;
  try {
    auto result = work();
    check_lost_pages();
    return result;
  } catch (const Error&) {
    check_lost_pages();
    throw;
  }
}

// Whether any file that is mapped now has lost pages.
bool any_mapping_is_damaged() noexcept;
// Throws Error(corrupt) if this memory belongs to a mapped file that has lost pages: what was read from it,
// or will be, may be zeros.
void check_mapped(const void* data, std::size_t bytes);
inline void check_mapped(const RowsView& rows) {
  if (rows.rows() != 0 && rows.place().kind == DeviceKind::cpu)
    check_mapped(rows.data(),
                 (rows.rows() - 1) * rows.stride_bytes() + rows.dim() * element_size(rows.type()));
}

// The registration of a mapping. Threads may register and read at the same time.
class MappedRange {
 public:
  MappedRange() = default;
  // Installs the handler. Registers nothing yet.
  explicit MappedRange(const std::filesystem::path& path);
  MappedRange(MappedRange&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
  MappedRange& operator=(MappedRange&& other) noexcept {
    std::swap(slot_, other.slot_);
    return *this;
  }
  // Before the memory is unmapped.
  ~MappedRange();

  // Page-aligned memory of the file, at least a byte.
  void set(const void* data, std::size_t bytes) noexcept;

  struct Slot;

 private:
  Slot* slot_ = nullptr;
};

}  // namespace nearwise

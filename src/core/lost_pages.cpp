#include "core/lost_pages.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/fork.h"

namespace nearwise {

// Never freed: the handler reads slots without a lock.
struct MappedRange::Slot {
  std::atomic<std::uint32_t> version{0};  // odd while begin and bytes change
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::size_t> bytes{0};  // 0: unused
  std::atomic<bool> is_damaged{false};
  std::atomic<std::uint64_t> last_loss{0};
  std::string path;  // guarded by the registry's mutex
  Slot* next = nullptr;
};

namespace {

using Slot = MappedRange::Slot;

// All that the handler uses is lock-free or set before it is installed.
std::atomic<Slot*> all_slots{nullptr};
std::atomic<std::uint64_t> losses{0};
std::atomic<std::size_t> damaged_mappings{0};
std::uintptr_t page_bytes = 0;
struct sigaction handler_before {};

struct ThreadState {
  std::uint32_t depth = 0;  // of scopes
  std::uint64_t since = 0;  // losses before the outermost scope
};
constinit thread_local ThreadState this_thread;

// For the handler, whether this thread is in a scope. A handler must not allocate, which a first access to
// thread-local memory of a shared library does and pthread_getspecific() does not. (The TLS model
// initial-exec would not either, but a module with the CUDA runtime then cannot be loaded: its thread-local
// memory exceeds what the system keeps for that.)
class ScopeMark {
 public:
  ScopeMark() noexcept : exists_(pthread_key_create(&key_, nullptr) == 0) {}
  // Without memory for it, or without a key, lost pages are signals as they were.
  void set(bool in_scope) const noexcept {
    if (exists_) pthread_setspecific(key_, in_scope ? this : nullptr);
  }
  bool is_set() const noexcept { return exists_ && pthread_getspecific(key_) != nullptr; }

 private:
  pthread_key_t key_{};
  bool exists_;
};
const ScopeMark scope_mark;

class Registry {
 public:
  Slot* take(const std::filesystem::path& path) {
    auto name = std::string(path.native());
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    if (!is_installed_) install();
    if (free_.empty()) {
      free_.reserve(count_ + 1);  // so that give_back() cannot fail
      auto made = std::make_unique<Slot>();
      made->next = all_slots.load(std::memory_order_relaxed);
      free_.push_back(made.get());
      all_slots.store(made.release(), std::memory_order_release);
      ++count_;
    }
    Slot* const slot = free_.back();
    free_.pop_back();
    slot->path = std::move(name);
    return slot;
  }

  void give_back(Slot* slot) noexcept {
    set(slot, 0, 0);
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    if (slot->is_damaged.exchange(false)) {
      last_damaged_ = std::move(slot->path);
      damaged_mappings.fetch_sub(1);
    }
    slot->last_loss = 0;
    free_.push_back(slot);
  }

  static void set(Slot* slot, std::uintptr_t begin, std::size_t bytes) noexcept {
    slot->version.fetch_add(1, std::memory_order_acq_rel);
    slot->begin.store(begin, std::memory_order_release);
    slot->bytes.store(bytes, std::memory_order_release);
    slot->version.fetch_add(1, std::memory_order_release);
  }

  // The file that lost pages last.
  std::string last_damaged() const {
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    const Slot* last = nullptr;
    for (const Slot* slot = all_slots; slot != nullptr; slot = slot->next)
      if (slot->is_damaged && (last == nullptr || slot->last_loss > last->last_loss)) last = slot;
    return last != nullptr ? last->path : last_damaged_;
  }

 private:
  void install();

  mutable std::mutex mutex_;
  bool is_installed_ = false;
  std::size_t count_ = 0;
  std::vector<Slot*> free_;
  std::string last_damaged_;  // of mappings that are gone
};

// Never destroyed: other threads may read while the process ends.
Registry& registry() {
  static Registry* const made = new Registry;
  return *made;
}

struct Range {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;  // 0: unused, or changing, and then not a mapping that anyone reads
};

Range range_of(const Slot& slot) noexcept {
  const std::uint32_t version = slot.version.load(std::memory_order_acquire);
  const Range range = {slot.begin.load(std::memory_order_acquire),
                       slot.bytes.load(std::memory_order_acquire)};
  if (version % 2 != 0 || slot.version.load(std::memory_order_relaxed) != version) return {};
  return range;
}

// Maps zeros over the page and all that follow it: behind the end of a file there are only lost pages.
bool replace_lost_pages(std::uintptr_t address) noexcept {
  for (Slot* slot = all_slots.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    const Range range = range_of(*slot);
    // The rest of the last page belongs to the mapping.
    const std::size_t mapped = (range.bytes + page_bytes - 1) / page_bytes * page_bytes;
    if (address < range.begin || address - range.begin >= mapped) continue;
    // Before the zeros appear: a thread that reads them sees the loss.
    if (!slot->is_damaged.exchange(true)) damaged_mappings.fetch_add(1);
    slot->last_loss = losses.fetch_add(1) + 1;
    const std::uintptr_t page = address / page_bytes * page_bytes;
    return mmap(reinterpret_cast<void*>(page), range.begin + mapped - page, PROT_READ,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  }
  return false;
}

// What would have happened without our handler.
void pass_on(int signal, siginfo_t* info, void* context) noexcept {
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) {
    handler_before.sa_sigaction(signal, info, context);
    return;
  }
  const bool was_sent = info->si_code <= 0;  // by kill() and the like, rather than by a fault
  if (handler_before.sa_handler == SIG_IGN && was_sent) return;
  if (handler_before.sa_handler != SIG_IGN && handler_before.sa_handler != SIG_DFL) {
    handler_before.sa_handler(signal);
    return;
  }
  // The default action: blocked now, the signal ends the process when this handler returns.
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
  raise(signal);
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool was_lost = info->si_code == BUS_ADRERR && scope_mark.is_set() &&
                        replace_lost_pages(reinterpret_cast<std::uintptr_t>(info->si_addr));
  if (!was_lost) pass_on(signal, info, context);
  errno = error;
}

void Registry::install() {
  page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  // Known before ours can run.
  if (sigaction(SIGBUS, nullptr, &handler_before) != 0) return;
  struct sigaction ours {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  is_installed_ = sigaction(SIGBUS, &ours, nullptr) == 0;
}

// Reads of a mapping come before those of the counters that tell whether they were sound. CPUs keep the order
// of reads on both sides of a change of the page tables, which waits for all of them; compilers must, too.
void reads_end_here() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

[[noreturn]] void fail_truncated(const std::string& path) {
  fail(ErrorCode::corrupt, "read {}: the file was truncated while in use, or its disk failed to read a part",
       path);
}

}  // namespace

LostPagesScope::LostPagesScope() noexcept {
  if (this_thread.depth++ != 0) return;
  this_thread.since = losses.load();
  scope_mark.set(true);
}

LostPagesScope::~LostPagesScope() {
  if (--this_thread.depth == 0) scope_mark.set(false);
}

bool pages_were_lost() noexcept {
  reads_end_here();
  return this_thread.depth != 0 && losses.load() != this_thread.since;
}

void check_lost_pages() {
  if (pages_were_lost()) [[unlikely]]
    fail_truncated(registry().last_damaged());
}

bool any_mapping_is_damaged() noexcept {
  reads_end_here();
  return damaged_mappings.load() != 0;
}

void check_mapped(const void* data, std::size_t bytes) {
  if (bytes == 0 || !any_mapping_is_damaged()) [[likely]]
    return;
  // Without the registry's lock: this may be a section that forbids fork(). The caller's mapping stays.
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  for (const Slot* slot = all_slots.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    const Range range = range_of(*slot);
    if (slot->is_damaged && begin < range.begin + range.bytes && range.begin < begin + bytes)
      fail_truncated(slot->path);
  }
}

MappedRange::MappedRange(const std::filesystem::path& path) : slot_(registry().take(path)) {}

MappedRange::~MappedRange() {
  if (slot_ != nullptr) registry().give_back(slot_);
}

void MappedRange::set(const void* data, std::size_t bytes) noexcept {
  Registry::set(slot_, reinterpret_cast<std::uintptr_t>(data), bytes);
}

}  // namespace nearwise

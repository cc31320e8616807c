// Orders the calls on one index: many of them read it, one changes it.
//
// A change has two parts. While it prepares (Changing) other changes wait and readers go on; to put in place
// what it prepared (Writing) it waits for the readers that are there, and those that come meanwhile wait for
// it: searches that overlap without end cannot keep it waiting. A reader waits for one change in this way,
// not for the next, so that changes without end cannot keep readers waiting either.
//
// All of it is open in a forked child, whatever threads held in the parent: they do not exist there, and what
// they were changing is whole (core/fork.h). The locks do not nest.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/progress.h"

namespace nearwise::index {

class IndexLock {
 public:
  // All constructors throw Error(cancelled) if this flag, or that of the thread, is set while they wait.
  class Reading {
   public:
    explicit Reading(IndexLock& lock, const CancelFlag* cancel = nullptr);
    ~Reading();
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    IndexLock& lock_;
    const std::uint32_t process_;
  };

  class Changing {
   public:
    explicit Changing(IndexLock& lock, const CancelFlag* cancel = nullptr);
    ~Changing();
    Changing(const Changing&) = delete;
    Changing& operator=(const Changing&) = delete;

   private:
    friend class IndexLock;
    IndexLock& lock_;
    const std::uint32_t process_;
  };

  // Within Changing.
  class Writing {
   public:
    explicit Writing(Changing& changing, const CancelFlag* cancel = nullptr);
    ~Writing();
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;

   private:
    IndexLock& lock_;
    const std::uint32_t process_;
  };

  // A thread of this process is in Changing.
  bool is_changing() const;

 private:
  // Upper half: fork_depth() of the process that wrote it.
  using Word = std::uint64_t;
  static constexpr Word writing = Word{1} << 31U;
  static constexpr Word waiting = Word{1} << 30U;  // of Writing, for readers
  static constexpr Word readers = waiting - 1;

  bool try_read(bool gives_way);
  bool try_change();
  bool try_write();

  std::atomic<Word> readers_{0};
  std::atomic<Word> change_{0};           // the lower half: 1 while there is one
  std::atomic<std::uint64_t> writes_{0};  // that ended
};

}  // namespace nearwise::index

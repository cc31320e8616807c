// fork() while other threads work. The child has a copy of the memory, but of all threads only the one that
// called fork(): what another thread had locked stays locked, and what it was changing stays half changed.
//
// Two rules keep a child working:
// - In a child, Threads (core/parallel.h) run every task on the calling thread. The workers do not exist
//   there, and their locks may be held.
// - Sections that change what a child may use, or hold a lock that it may take, run under NoFork.
#pragma once

#include <cstdint>

namespace nearwise {

// Whether this process is a fork of one that had loaded the library.
bool in_forked_child();
// Forks between that process and this one: tells what this process has locked from what it inherited.
std::uint32_t fork_depth();

// While one exists, fork() on other threads waits. For short sections that neither nest nor call fork().
class NoFork {
 public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;
};

}  // namespace nearwise

// AMX tiles: permission of the operating system, and the tile configuration of a thread.
#pragma once

namespace nearwise::cpu::x86 {

// Requests permission once per process; false if the CPU, the kernel or a sandbox does not allow tiles.
bool tiles_permitted();

// Configures the calling thread's eight tiles as 16 rows of 64 bytes and releases them on destruction, so
// that context switches do not save them any more. Requires tiles_permitted().
class AmxScope {
 public:
  AmxScope() noexcept;
  ~AmxScope();
  AmxScope(const AmxScope&) = delete;
  AmxScope& operator=(const AmxScope&) = delete;
};

}  // namespace nearwise::cpu::x86

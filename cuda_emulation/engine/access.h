// Checks of one memory access by a kernel: bounds, alignment, initialisation, races.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_emulation {

enum class Alignment : std::uint8_t { natural, any };

struct CheckedAccess {
  const char* address;
  std::size_t bytes;
  bool reads;
  bool writes;
  const void* code;  // return address of the access
  bool atomic = false;
  Alignment alignment = Alignment::natural;
};

// Called by a thread of the running kernel. Ends the kernel if the check fails.
void check_access(const CheckedAccess& access);

// Called by the compiler's hooks. Ignored while the emulator itself runs; may switch to another thread
// afterwards.
void hooked_access(const CheckedAccess& access);
void hooked_range(const void* address, std::size_t bytes, bool writes, const void* code);

// Called before main() by every file that was compiled with the hooks.
void register_hooks();

// "file:line" of a code address, as far as debug information has it.
const char* source_line(const void* code);

}  // namespace cuda_emulation

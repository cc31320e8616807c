// The checks of one access by a kernel: bounds, alignment, initialisation, races.
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
  const void* code;  // where it was made
  bool atomic = false;
  Alignment alignment = Alignment::natural;
};

// By a thread of the kernel that runs. Ends the kernel on a finding.
void check_access(const CheckedAccess& access);

// The calls of the compiler's hooks: ignored while the emulator itself runs; others may run afterwards.
void hooked_access(const CheckedAccess& access);
void hooked_range(const void* address, std::size_t bytes, bool writes, const void* code);

// Called before main by every file that was compiled with the hooks.
void found_hooks();

// "file:line" of an address in the program, as far as its debug information says.
const char* source_line(const void* code);

}  // namespace cuda_emulation

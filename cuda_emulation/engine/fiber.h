// Fibers: stack switching in user space (x86-64, System V).
#pragma once

#include <cstddef>

namespace cuda_emulation {

// Excludes the guard page.
inline constexpr std::size_t stack_bytes = 128 * 1024;

// Allocates a stack with a guard page below it. Never freed: later launches reuse it.
char* new_stack();

// Prepares a stack so that switching to the result calls `entry`, which must not return.
void* start_of_fiber(char* stack, void (*entry)());

// Saves registers and the stack pointer to *save and resumes the fiber saved in `load`.
extern "C" void cuda_emulation_switch(void** save, void* load);

}  // namespace cuda_emulation

// Fibers: stacks that are switched by hand (x86-64, System V).
#pragma once

#include <cstddef>

namespace cuda_emulation {

// Without its guard page.
inline constexpr std::size_t stack_bytes = 128 * 1024;

// A stack with an unreadable page below it. Lives as long as the process: stacks are used again by later launches.
char* new_stack();

// Prepares a stack so that switching to the result calls `entry`, which never returns.
void* start_of_fiber(char* stack, void (*entry)());

// Keeps the current registers and stack in *save, goes on where `load` was kept.
extern "C" void cuda_emulation_switch(void** save, void* load);

}  // namespace cuda_emulation

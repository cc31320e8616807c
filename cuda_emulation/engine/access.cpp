#include "cuda_emulation/engine/access.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "cuda_emulation/engine/fiber.h"
#include "cuda_emulation/engine/profile.h"
#include "cuda_emulation/engine/schedule.h"

// First and last address of the program or of the shared library this is part of; hidden, so that each has
// its own.
extern "C" __attribute__((visibility("hidden"))) char __ehdr_start[], _end[];

namespace cuda_emulation {
namespace {

bool has_hooks = false;

[[noreturn]] void report(cudaError_t status, const char* finding, const CheckedAccess& access,
                         const Timestamp* conflict = nullptr) {
  const Thread& thread = current();
  std::string text = fmt::format("{}: {}: {}-byte {} at {}, {}", describe(thread), finding, access.bytes,
                                 access.writes ? "write" : "read", static_cast<const void*>(access.address),
                                 source_line(access.code));
  if (conflict != nullptr)
    text += fmt::format("; conflicts with block {} thread {}", conflict->thread / thread.block->size,
                        conflict->thread % thread.block->size);
  fail_kernel(status, text);
}

bool within(const char* address, const void* begin, std::size_t size) {
  return address >= begin && address < static_cast<const char*>(begin) + size;
}

// Memory that is private to the thread or constant: its stack, built-in variables, kernel arguments,
// constants.
bool is_private(const char* address, const Thread& thread) {
  return within(address, thread.stack, stack_bytes) || (address >= __ehdr_start && address < _end) ||
         within(address, machine.call->call.get(), machine.call->call_bytes) ||
         within(address, machine.threads.data(), machine.threads.size() * sizeof(Thread));
}

Region* shared_region(const char* address, Block& block) {
  if (block.static_region.contains(address)) return &block.static_region;
  return block.dynamic_region.contains(address) ? &block.dynamic_region : nullptr;
}

void check_races(const Cell& cell, std::uint8_t bytes, const CheckedAccess& access, const Thread& thread) {
  const auto conflicts = [&](const Access& earlier) {
    return (earlier.bytes & bytes) != 0 && !(access.atomic && earlier.atomic) &&
           !happened_before(earlier.timestamp, thread);
  };
  if (conflicts(cell.write))
    report(cudaErrorLaunchFailure, "race with a write", access, &cell.write.timestamp);
  if (!access.writes) return;
  for (const Access& read : cell.read)
    if (conflicts(read)) report(cudaErrorLaunchFailure, "race with a read", access, &read.timestamp);
}

void remember(Cell& cell, std::uint8_t bytes, const CheckedAccess& access, const Thread& thread) {
  const Access latest = {{thread.index, thread.clock, thread.block->epoch}, bytes, access.atomic};
  if (access.writes) {
    cell.write = latest;
    cell.initialised |= bytes;
    cell.read[0].bytes = cell.read[1].bytes = 0;
  } else {
    // Only the first and the latest reader are kept: a race with a third may be missed, false reports are
    // impossible.
    const bool second = cell.read[0].bytes != 0 && cell.read[0].timestamp.thread != thread.index;
    cell.read[second ? 1 : 0] = latest;
  }
}

void check_cell(Cell& cell, std::uint8_t bytes, const CheckedAccess& access, const Thread& thread) {
  if (cell.launch != machine.launch) cell = {.launch = machine.launch, .initialised = cell.initialised};
  if (access.reads && (cell.initialised & bytes) != bytes)
    report(cudaErrorIllegalAddress, "read of uninitialised memory", access);
  check_races(cell, bytes, access, thread);
  remember(cell, bytes, access, thread);
}

}  // namespace

bool checks_accesses() { return has_hooks; }
void register_hooks() { has_hooks = true; }

const char* source_line(const void* code) {
  static std::array<char, 512> line;
  std::snprintf(line.data(), line.size(), "?");
  // `code` is a return address; the access is the instruction before it.
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(code) - __ehdr_start - 1);
  const std::string command = fmt::format("addr2line -e /proc/{}/exe {:#x} 2>/dev/null", getpid(), offset);
  if (FILE* const output = popen(command.c_str(), "r")) {
    if (std::fgets(line.data(), static_cast<int>(line.size()), output) != nullptr)
      line[std::strcspn(line.data(), "\n")] = '\0';
    pclose(output);
  }
  return line.data();
}

void check_access(const CheckedAccess& access) {
  Thread& thread = current();
  ++statistics().checked_accesses;
  Region* region = shared_region(access.address, *thread.block);
  if (region == nullptr) {
    if (is_private(access.address, thread)) return;
    region = find_region(access.address);
    if (region == nullptr) report(cudaErrorIllegalAddress, "access outside device memory", access);
  }
  const auto offset = static_cast<std::size_t>(access.address - region->begin);
  if (access.bytes > region->size - offset)
    report(cudaErrorIllegalAddress, "access past the end of an allocation", access);
  if (access.alignment == Alignment::natural &&
      reinterpret_cast<std::uintptr_t>(access.address) % access.bytes != 0)
    report(cudaErrorMisalignedAddress, "misaligned access", access);
  if (region->device != shared_memory && region->device != machine.device)
    report(cudaErrorIllegalAddress, "access to another device's memory", access);
  if (options().profile) profile_access(access, *region, thread);
  const std::size_t end = offset + access.bytes;
  for (std::size_t index = offset / 4; index * 4 < end; ++index) {
    const std::size_t first = std::max(offset, index * 4) - index * 4;
    const std::size_t last = std::min(end - index * 4, std::size_t{4});
    const unsigned bytes = ((1u << last) - 1u) & ~((1u << first) - 1u);
    check_cell(region->cell(index), static_cast<std::uint8_t>(bytes), access, thread);
  }
}

void hooked_access(const CheckedAccess& access) {
  if (inside_emulator) return;
  const InsideEmulator inside;
  check_access(access);
  if (static_cast<double>(next_random() >> 11) * 0x1p-53 >= options().preemption) return;
  count_switch();
  switch_to(choose_any());
}

void hooked_range(const void* address, std::size_t bytes, bool writes, const void* code) {
  if (inside_emulator || bytes == 0) return;
  const InsideEmulator inside;
  // A range of 16 bytes is assumed to be a vector, which must be aligned.
  check_access({.address = static_cast<const char*>(address),
                .bytes = bytes,
                .reads = !writes,
                .writes = writes,
                .code = code,
                .alignment = bytes == 16 ? Alignment::natural : Alignment::any});
}

void begin_atomic(const void* address, unsigned bytes, const char* file, int line) {
  ++statistics().atomics;
  yield(file, line);
  inside_emulator = true;
  if (!has_hooks) return;
  check_access({.address = static_cast<const char*>(address),
                .bytes = bytes,
                .reads = true,
                .writes = true,
                .code = __builtin_return_address(0),
                .atomic = true});
  pass_atomic(current(), machine.atomics[address]);
}

void end_atomic() { inside_emulator = false; }

void fence() {
  if (!has_hooks) return;
  const InsideEmulator inside;
  pass_fence(current());
}

}  // namespace cuda_emulation

// Instruction sets that kernels are compiled for, and the choice among them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nearwise::cpu {

// Instructions in addition to Highway's target: with AVX2, dot products of 8-bit integers in registers of 256
// bits (AVX-VNNI); with AVX-512, each including those before it, dot products of 8-bit integers, of bf16, and
// AMX tiles of both.
enum class Extension : std::uint8_t { none, narrow_integer_dots, integer_dots, bf16_dots, tiles };

// target: one of Highway's target bits; opaque outside kernels/.
struct InstructionSet {
  std::int64_t target = 0;
  Extension extension = Extension::none;
};

// Compiled in and runnable on this CPU, best first.
const std::vector<InstructionSet>& available_instruction_sets();
std::string_view name(InstructionSet set);

// The set of that name, or the best one if empty. Throws Error(invalid_argument) that lists the choices.
InstructionSet choose_instruction_set(const std::string& requested);

}  // namespace nearwise::cpu

// Names of the instruction sets our kernels are compiled for, and the choice among them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nearwise::cpu {

// What a set has beyond Highway's target: dot products of 8-bit integers, also of bf16, also tiles of both.
enum class Extension : std::uint8_t { none, integer_dots, bf16_dots, tiles };

// target: one of Highway's target bits; opaque outside kernels/.
struct InstructionSet {
  std::int64_t target = 0;
  Extension extension = Extension::none;
};

// Compiled in and runnable on this CPU, best first.
std::vector<InstructionSet> available_instruction_sets();
std::string_view name(InstructionSet set);

// The set of that name, or the best one for an empty name; throws Error(invalid_argument) naming the choices.
InstructionSet choose_instruction_set(const std::string& requested);

}  // namespace nearwise::cpu

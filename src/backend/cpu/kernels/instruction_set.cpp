#include "backend/cpu/kernels/instruction_set.h"

#include "backend/cpu/kernels/targets.h"
#include "core/check.h"
#include "hwy/targets.h"

namespace nearwise::cpu {

std::vector<InstructionSet> available_instruction_sets() {
  // Asked once: on a virtual machine the answer takes microseconds, and every operation begins here.
  static const std::vector<InstructionSet> available = [] {
    std::vector<InstructionSet> sets;
    // A lower bit is a better target.
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) sets.push_back({target});
    return sets;
  }();
  return available;
}

std::string_view name(InstructionSet set) {
  const std::string_view highway_name = hwy::TargetName(set.target);
  if (highway_name == "AVX3") return "avx512";
  if (highway_name == "AVX2") return "avx2";
  if (highway_name == "SSE4") return "sse4";
  if (highway_name == "NEON") return "neon";
  return "portable";
}

InstructionSet choose_instruction_set(const std::string& requested) {
  const std::vector<InstructionSet> sets = available_instruction_sets();
  if (requested.empty()) return sets.front();
  std::string choices;
  for (const InstructionSet set : sets) {
    if (name(set) == requested) return set;
    choices += choices.empty() ? "" : ", ";
    choices += name(set);
  }
  fail(ErrorCode::invalid_argument, "context: isa must be one of {} on this machine, given '{}'", choices,
       requested);
}

}  // namespace nearwise::cpu

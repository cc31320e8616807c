#include "backend/cpu/kernels/instruction_set.h"

#include "backend/cpu/kernels/targets.h"
#include "backend/cpu/x86/scans.h"
#include "core/check.h"
#include "hwy/targets.h"

namespace nearwise::cpu {

const std::vector<InstructionSet>& available_instruction_sets() {
  // Cached: every operation needs it, and CPUID takes microseconds on a virtual machine.
  static const std::vector<InstructionSet> available = [] {
    std::vector<InstructionSet> sets;
    // A lower bit is a better target.
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      if (target == HWY_AVX3) {
        const x86::Features& found = x86::features();
        if (found.tiles) sets.push_back({target, Extension::tiles});
        const bool has_bf16 = found.integer_dots && found.bf16_dots;
        if (has_bf16 && found.fast_bf16_dots) sets.push_back({target, Extension::bf16_dots});
        if (found.integer_dots) sets.push_back({target, Extension::integer_dots});
        if (has_bf16 && !found.fast_bf16_dots) sets.push_back({target, Extension::bf16_dots});
      }
      if (target == HWY_AVX2 && x86::features().narrow_integer_dots)
        sets.push_back({target, Extension::narrow_integer_dots});
      sets.push_back({target});
    }
    // Highway reports NEON only where AES is too, which no kernel uses.
    if (sets.empty()) sets.push_back({HWY_STATIC_TARGET});
    return sets;
  }();
  return available;
}

std::string_view name(InstructionSet set) {
  switch (set.extension) {
    case Extension::tiles: return "amx";
    case Extension::bf16_dots: return "avx512_bf16";
    case Extension::integer_dots: return "avx512_vnni";
    case Extension::narrow_integer_dots: return "avx_vnni";
    case Extension::none: break;
  }
  const std::string_view highway_name = hwy::TargetName(set.target);
  if (highway_name == "AVX3") return "avx512";
  if (highway_name == "AVX2") return "avx2";
  if (highway_name == "SSE4") return "sse4";
  if (highway_name == "NEON") return "neon";
  return "portable";
}

InstructionSet choose_instruction_set(const std::string& requested) {
  const std::vector<InstructionSet>& sets = available_instruction_sets();
  if (requested.empty()) return sets.front();
  std::string choices;
  for (const InstructionSet set : sets) {
    if (name(set) == requested) return set;
    choices += choices.empty() ? "" : ", ";
    choices += name(set);
  }
  fail(ErrorCode::invalid_argument, "context: isa must be one of {} on this machine, got '{}'", choices,
       requested);
}

}  // namespace nearwise::cpu

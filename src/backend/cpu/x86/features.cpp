#include <cpuid.h>

#include <cstring>

#include "backend/cpu/x86/amx_scope.h"
#include "backend/cpu/x86/scans.h"

namespace nearwise::cpu::x86 {
namespace {

constexpr bool bit(unsigned word, int index) { return (word >> index & 1) != 0; }

bool is_intel() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  __get_cpuid(0, &a, &b, &c, &d);
  char vendor[12];
  std::memcpy(vendor, &b, 4);
  std::memcpy(vendor + 4, &d, 4);
  std::memcpy(vendor + 8, &c, 4);
  return std::memcmp(vendor, "GenuineIntel", sizeof(vendor)) == 0;
}

Features detect() {
  Features found;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return found;
  const unsigned subleaves = a;
  found.integer_dots = bit(c, 11);
  found.byte_tables = bit(c, 1) && bit(b, 8) && bit(b, 30);
  found.tiles = bit(d, 22) && bit(d, 24) && bit(d, 25) && tiles_permitted();
  if (subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) {
    found.narrow_integer_dots = bit(a, 4);
    found.bf16_dots = bit(a, 5);
  }
  found.fast_bf16_dots = found.bf16_dots && !is_intel();
  return found;
}

}  // namespace

const Features& features() {
  static const Features found = detect();
  return found;
}

}  // namespace nearwise::cpu::x86

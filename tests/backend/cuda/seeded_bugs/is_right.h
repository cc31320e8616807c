// For drivers of seeded bugs: compares results of the emulated device with the CPU's.
#pragma once

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include "cuda_emulation/control.h"
#include "nearwise/context.h"
#include "support/quantizer_cases.h"

namespace nearwise {

// Whether work(context) gives the CPU's matrix; prints the finding if not.
template <typename Work>
bool is_right(const char* what, const Work& work, std::uint64_t limit = 20'000) {
  try {
    const testing::AssertionResult match =
        support::same(support::to_vector(work(Context::cpu({.threads = 1}))),
                      work(Context::cuda(0, {.threads = 1, .memory_limit = limit})));
    if (match) return true;
    std::printf("found: wrong answer: %s: %s\n", what, match.message());
  } catch (const std::exception& error) {
    const std::string report = cuda_emulation::take_report();
    std::printf("%s: %s: %s\n", report.empty() ? "error" : "found",
                report.empty() ? error.what() : report.c_str(), what);
  }
  return false;
}

}  // namespace nearwise

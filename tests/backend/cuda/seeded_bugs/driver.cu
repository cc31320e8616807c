// Selections that any seeded bug must corrupt: prints "clean" or the finding. Linked with mutated kernels,
// and once with the original ones.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "backend/cuda/device_selection.h"
#include "cuda_emulation/control.h"

namespace nearwise {
namespace {

using gpu::Ties;
using support::DeviceSelection;
using support::RowKind;

// By reduction (k = 2), by the shortest warp queue (k <= 32), and by radix selection with its sorts.
std::vector<DeviceSelection> selections() {
  const gpu::tuning::RowSplit parts = {.target_parts = 20, .min_columns = 90, .columns_per_entry = 2};
  const gpu::tuning::RowSplit thirds = {.target_parts = 120, .min_columns = 60, .columns_per_entry = 2};
  std::vector<DeviceSelection> all;
  for (const RowKind kind : {RowKind::descending, RowKind::few_values, RowKind::anything, RowKind::zeros})
    for (const Ties ties : support::every_ties) {
      // Enough rows that the best two are in one lane for some.
      all.push_back({kind, 300, 70, 2, ties, Order::smallest});
      all.push_back({kind, 5, 700, 30, ties, Order::smallest});
      all.push_back({kind, 2, 1009, 32, ties, Order::largest, parts});
      all.push_back({kind, 40, 197, 32, ties, Order::smallest, thirds});
      all.push_back({kind, 1, 2600, 2300, ties, Order::smallest});
    }
  return all;
}

}  // namespace
}  // namespace nearwise

int main() {
  using namespace nearwise;
  for (const support::DeviceSelection& selection : selections()) {
    try {
      const testing::AssertionResult match = selection.matches_oracle();
      if (match) continue;
      std::printf("found: wrong answer: %s: %s\n", selection.description().c_str(), match.message());
    } catch (const std::exception& error) {
      const std::string report = cuda_emulation::take_report();
      // An exception without a report is not a finding of the emulated device.
      std::printf("%s: %s: %s\n", report.empty() ? "error" : "found",
                  report.empty() ? error.what() : report.c_str(), selection.description().c_str());
    }
    return 0;
  }
  std::printf("clean\n");
  return 0;
}

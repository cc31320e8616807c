#include "backend/cpu/rows/scan_rates.h"

#include "backend/cpu/rows/choose_scan.h"
#include "core/memory.h"
#include "nearwise/machine.h"

namespace nearwise::cpu {

double scan_gflops(const ScanKernel& kernel) {
  constexpr std::size_t dim = 256;
  constexpr std::size_t queries = 384;  // a multiple of every kernel's panel width, as are the rows
  constexpr std::size_t rows = 1024;
  constexpr int repetitions = 7;
  const std::size_t row_bytes = encoded_row_bytes(kernel, dim);
  MemoryBudget budget;
  // Zeros: speed does not depend on the values unless they are denormal.
  Buffer<std::byte> query_panels(budget, queries * row_bytes);
  Buffer<std::byte> base_panels(budget, rows * row_bytes);
  Buffer<float> biases(budget, rows);
  Buffer<std::int32_t> integer_biases(budget, rows);
  Buffer<float> cutoffs(budget, queries);
  Buffer<float> zeros(budget, std::max(queries, rows));  // scales and residuals, as integers too
  std::ranges::fill(zeros.span(), 0.0F);
  std::ranges::fill(query_panels.span(), std::byte{0});
  std::ranges::fill(base_panels.span(), std::byte{0});
  std::ranges::fill(biases.span(), 1.0F);
  std::ranges::fill(integer_biases.span(), 2);
  std::ranges::fill(cutoffs.span(), -1.0F);  // nothing passes
  const double seconds = fastest_seconds(repetitions, [&] {
    kernel.scan({.query_panels = query_panels.data(),
                 .query_panel_count = queries / kernel.query_width,
                 .first_query = 0,
                 .base_panels = base_panels.data(),
                 .biases = biases.data(),
                 .integer_biases = integer_biases.data(),
                 .half_biases = integer_biases.data(),
                 .row_scales = zeros.data(),
                 .row_residuals = zeros.data(),
                 .query_scales = zeros.data(),
                 .query_starts = reinterpret_cast<const std::int32_t*>(zeros.data()),
                 .base_panel_count = rows / kernel.base_width,
                 .first_row = 0,
                 .end_row = static_cast<std::uint32_t>(rows),
                 .row_bytes = row_bytes,
                 .lists = {.cutoffs = cutoffs.data(), .slack_factors = zeros.data()},
                 .make_room = nullptr,
                 .owner = nullptr});
  });
  return 2.0 * dim * queries * rows / seconds * 1e-9;
}

}  // namespace nearwise::cpu

namespace nearwise {

std::vector<ScanInfo> measure_scans(const std::string& isa) {
  const cpu::InstructionSet set = cpu::choose_instruction_set(isa);
  std::vector<ScanInfo> scans;
  for (const ElementType type : {ElementType::f32, ElementType::u8, ElementType::i8}) {
    const cpu::ScanKernel kernel = cpu::choose_screen(set, Metric::sqeuclidean, type, type, 256);
    scans.push_back({.rows = type,
                     .multiplied_as = is_integer(kernel.base_encoding) || is_scaled(kernel.base_encoding)
                                          ? "integers"
                                      : kernel.base_encoding == cpu::Encoding::bf16 ? "bf16"
                                                                                    : "f32",
                     .gflops = cpu::scan_gflops(kernel)});
  }
  return scans;
}

}  // namespace nearwise

// Vectors packed for a scan: panels, lengths of queries, and score biases of base vectors.
#pragma once

#include <cstddef>
#include <limits>

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/stream.h"
#include "backend/ops.h"
#include "core/math/score_bound.h"
#include "core/memory.h"

namespace nearwise::cpu {

constexpr Products products_of(Encoding encoding) {
  if (is_integer(encoding)) return Products::integers;
  if (is_scaled(encoding)) return Products::scaled_integers;
  return encoding == Encoding::bf16 ? Products::bf16 : Products::f32;
}

// Twice the constant part of an integer score.
std::int32_t integer_bias(const PackedRow& row, Metric metric, const ScanKernel& kernel, ElementType type);

class PackedRows : public PreparedRows {
 public:
  PackedRows(MemoryBudget& budget, const ScanKernel& kernel, RowsRole role, std::size_t row_count,
             std::size_t row_dim);

  // Budgeted bytes per row of a large batch.
  static std::size_t bytes_per_row(const ScanKernel& kernel, RowsRole role, std::size_t dim);
  // Additional memory of each thread while packing.
  static std::size_t scratch_bytes(const ScanKernel& kernel, std::size_t dim);

  std::size_t panel_count() const { return panel_count_; }
  std::byte* panel(std::size_t index) { return panels_.data() + index * panel_bytes(); }
  const std::byte* panel(std::size_t index) const { return panels_.data() + index * panel_bytes(); }
  std::size_t panel_bytes() const { return row_bytes * width; }

  const ScanKernel kernel;
  const RowsRole role;
  const std::size_t rows;
  const std::size_t dim;
  const std::size_t width;      // rows per panel
  const std::size_t row_bytes;  // encoded

 private:
  const std::size_t panel_count_;
  Buffer<std::byte> panels_;  // [panels, width * row_bytes]

 public:
  // [panels, width] base only, for floating-point or integer products (ScanArgs)
  Buffer<float> biases;
  Buffer<std::int32_t> integer_biases;
  Buffer<std::int32_t> half_biases;  // floor(integer bias / 2)
  // [panels, width] scaled products only
  Buffer<float> scales;
  Buffer<float> residuals;      // base only
  Buffer<std::int32_t> starts;  // queries only
  Buffer<Lengths> lengths;      // [rows] queries only
  Lengths longest;              // maximum of each length over all rows
};

// Packs one panel at a time. Not thread-safe.
class PanelPacker {
 public:
  static constexpr std::size_t good_panel = std::numeric_limits<std::size_t>::max();

  PanelPacker(CpuStream& cpu, const PrepareArgs& args, PackedRows& out);

  // Returns the first row with a non-finite element, or good_panel.
  std::size_t pack(std::size_t index);
  // Packs rows [first_row, first_row + count) of the input into panel `index`.
  std::size_t pack(std::size_t index, std::size_t first_row, std::size_t count);
  // Over all rows packed so far.
  const Lengths& longest() const { return longest_; }

 private:
  void take_query(std::size_t place, const PackedRow& row);
  void take_row(std::size_t place, const PackedRow& row);
  void pad(std::size_t place);

  const PrepareArgs& args_;
  PackedRows& out_;
  const Encoding encoding_;
  const PackRowsKernels::Function pack_;
  Buffer<std::byte> scratch_;
  Buffer<PackedRow> measured_;
  Lengths longest_;
};

}  // namespace nearwise::cpu

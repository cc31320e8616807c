// Packed queries in row-major order, from which panels of any subset are gathered.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "backend/cpu/rows/prepared_rows.h"
#include "core/memory.h"

namespace nearwise::cpu {

class QueryRows {
 public:
  QueryRows(CpuStream& cpu, const PackedRows& packed)
      : packed_(packed), units_(packed.row_bytes / 4), values_(cpu.budget(), packed.rows * units_) {
    cpu.threads().for_each(packed.panel_count(), [&](std::size_t index) {
      const std::byte* const panel = packed.panel(index);
      const std::size_t first = index * packed.width;
      for (std::size_t i = 0; i < std::min(packed.width, packed.rows - first); ++i)
        for (std::size_t unit = 0; unit < units_; ++unit)
          std::memcpy(&values_[(first + i) * units_ + unit], panel + (unit * packed.width + i) * 4, 4);
    });
  }
  static std::uint64_t bytes_per_query(const ScanKernel& scan, std::size_t dim) {
    return encoded_row_bytes(scan, dim);
  }

  // Fills panels with these queries; pads the last one with zeros.
  void gather(std::span<const std::uint32_t> queries, std::byte* panels) const {
    const std::size_t width = packed_.width;
    for (std::size_t first = 0; first < queries.size(); first += width) {
      auto* const out = reinterpret_cast<std::uint32_t*>(panels + first * packed_.row_bytes);
      std::size_t done = 0;
      if (units_ % 4 == 0)
        for (; done + 4 <= std::min(width, queries.size() - first); done += 4)
          transpose_four(queries.subspan(first + done, 4), width, out + done);
      for (std::size_t i = done; i < width; ++i) {
        if (first + i >= queries.size()) {
          for (std::size_t unit = 0; unit < units_; ++unit) out[unit * width + i] = 0;
          continue;
        }
        const std::uint32_t* const row = values_.data() + queries[first + i] * units_;
        for (std::size_t unit = 0; unit < units_; ++unit) out[unit * width + i] = row[unit];
      }
    }
  }

  // Packed elements of a query; floating-point encodings only.
  void unpack(std::size_t query, float* out) const {
    const std::uint32_t* const row = values_.data() + query * units_;
    if (packed_.kernel.query_encoding == Encoding::f32) {
      std::memcpy(out, row, packed_.dim * sizeof(float));
      return;
    }
    for (std::size_t i = 0; i < packed_.dim; ++i)
      out[i] = std::bit_cast<float>(row[i / 2] >> (i % 2 * 16) << 16);
  }

 private:
  // Four 4-byte units: four queries at a time take as many stores as one.
  using Four [[gnu::vector_size(16), gnu::may_alias]] = std::uint32_t;

  // out: [units, width], of which four columns are written.
  void transpose_four(std::span<const std::uint32_t> queries, std::size_t width, std::uint32_t* out) const {
    const std::uint32_t* rows[4];
    for (std::size_t i = 0; i < 4; ++i) rows[i] = values_.data() + queries[i] * units_;
    for (std::size_t unit = 0; unit < units_; unit += 4) {
      Four of[4];
      for (std::size_t i = 0; i < 4; ++i) std::memcpy(&of[i], rows[i] + unit, sizeof(Four));
      const Four low_0 = __builtin_shufflevector(of[0], of[1], 0, 4, 1, 5);
      const Four low_1 = __builtin_shufflevector(of[2], of[3], 0, 4, 1, 5);
      const Four high_0 = __builtin_shufflevector(of[0], of[1], 2, 6, 3, 7);
      const Four high_1 = __builtin_shufflevector(of[2], of[3], 2, 6, 3, 7);
      const Four transposed[4] = {__builtin_shufflevector(low_0, low_1, 0, 1, 4, 5),
                                  __builtin_shufflevector(low_0, low_1, 2, 3, 6, 7),
                                  __builtin_shufflevector(high_0, high_1, 0, 1, 4, 5),
                                  __builtin_shufflevector(high_0, high_1, 2, 3, 6, 7)};
      for (std::size_t i = 0; i < 4; ++i) std::memcpy(out + (unit + i) * width, &transposed[i], sizeof(Four));
    }
  }

  const PackedRows& packed_;
  const std::size_t units_;
  Buffer<std::uint32_t> values_;  // [queries, units]
};

}  // namespace nearwise::cpu

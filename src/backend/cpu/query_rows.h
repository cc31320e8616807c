// Packed queries row by row.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "backend/cpu/prepared_rows.h"
#include "core/memory.h"

namespace nearwise::cpu {

// The packed queries once more, row by row, so that panels of any of them can be put together.
class QueryRows {
 public:
  QueryRows(CpuStream& cpu, const PackedRows& packed)
      : packed_(packed), units_(packed.row_bytes / 4), values_(cpu.budget(), packed.rows * units_) {
    for (std::size_t query = 0; query < packed.rows; ++query) {
      const std::byte* const panel = packed.panel(query / packed.width);
      for (std::size_t unit = 0; unit < units_; ++unit)
        std::memcpy(&values_[query * units_ + unit], panel + (unit * packed.width + query % packed.width) * 4,
                    4);
    }
  }
  static std::uint64_t bytes_per_query(const ScanKernel& scan, std::size_t dim) {
    return encoded_row_bytes(scan, dim);
  }

  // Fills panels with these queries, and what is left of the last with zeros.
  void gather(std::span<const std::uint32_t> queries, std::byte* panels) const {
    const std::size_t width = packed_.width;
    for (std::size_t first = 0; first < queries.size(); first += width) {
      auto* const out = reinterpret_cast<std::uint32_t*>(panels + first * packed_.row_bytes);
      for (std::size_t i = 0; i < width; ++i) {
        if (first + i >= queries.size()) {
          for (std::size_t unit = 0; unit < units_; ++unit) out[unit * width + i] = 0;
          continue;
        }
        const std::uint32_t* const row = values_.data() + queries[first + i] * units_;
        for (std::size_t unit = 0; unit < units_; ++unit) out[unit * width + i] = row[unit];
      }
    }
  }

  // The elements of a query as they are packed; of floating encodings.
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
  const PackedRows& packed_;
  const std::size_t units_;
  Buffer<std::uint32_t> values_;  // [queries, units]
};

}  // namespace nearwise::cpu

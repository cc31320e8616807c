// Score biases of a block under a filter: a row that is not allowed gets one that no score passes with.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/rows/prepared_rows.h"
#include "backend/cpu/stream.h"
#include "backend/ops.h"
#include "core/memory.h"

namespace nearwise::cpu {

class FilteredBiases {
 public:
  // Whether the biases of this scan can be replaced: those of integers have room for it up to 2048
  // dimensions.
  static bool can_mask(const ScanKernel& scan, std::size_t dim);
  // Memory for a block of this many rows.
  static std::uint64_t bytes(std::size_t rows) { return rows * (2 * sizeof(std::int32_t) + 1) + 512; }

  // Without args.allowed: the biases of the block itself.
  FilteredBiases(CpuStream& cpu, const KnnBlockArgs& args, const PackedRows& block);

  // Of the rows from this panel on, for ScanArgs; null where the scan has other ones.
  const float* floats(std::size_t panel) const { return at(floats_, panel * width_); }
  const std::int32_t* integers(std::size_t panel) const { return at(integers_, panel * width_); }
  const std::int32_t* halves(std::size_t panel) const { return at(halves_, panel * width_); }
  const std::uint16_t* allowed(std::size_t panel) const { return at(bits_, panel * width_ / 16); }
  // Whether a row of panels [first, first + count) is allowed.
  bool any_allowed(std::size_t first, std::size_t count) const;

 private:
  template <typename T>
  static const T* at(const T* values, std::size_t index) {
    return values == nullptr ? nullptr : values + index;
  }

  const std::size_t width_;
  const std::size_t panels_;
  const float* floats_ = nullptr;
  const std::int32_t* integers_ = nullptr;
  const std::int32_t* halves_ = nullptr;
  const std::uint16_t* bits_ = nullptr;
  Buffer<float> own_floats_;
  Buffer<std::int32_t> own_integers_;  // biases, then their halves
  Buffer<std::uint16_t> own_bits_;     // one bit for each row
};

}  // namespace nearwise::cpu

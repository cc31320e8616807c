// What kernels of selection work on: the k best of every row, or of every part of a row.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearwise::gpu {

// By what equal values are ordered, before their positions.
enum class Ties : std::uint8_t { positions, narrow_ids, wide_ids };

// All pointers are to device memory.
struct SelectionTask {
  const float* values = nullptr;  // [rows, cols]
  std::size_t value_stride = 0;
  // At most one of them. Without, a column's number is its id. Ids that do not break ties are looked up only.
  const std::uint32_t* narrow_ids = nullptr;
  const std::int64_t* wide_ids = nullptr;
  std::size_t id_stride = 0;  // 0: one row of ids serves all rows
  std::int64_t first_id = 0;  // of the first column, where ids are numbers of columns
  std::size_t rows = 0;
  std::uint32_t cols = 0;  // at most 2^31
  std::uint32_t parts =
      1;  // of a row, equally long but for one column; none is shorter than k; rows * parts < 2^31
  std::uint32_t k = 0;
  std::int32_t turn = 0;  // the sign bit, where the largest values are the best
  // Where the answer goes: entry i of part p of row r to r * best_stride + p * k + i, of either.
  float* best = nullptr;
  std::int64_t* ids = nullptr;
  std::size_t best_stride = 0;
};

}  // namespace nearwise::gpu

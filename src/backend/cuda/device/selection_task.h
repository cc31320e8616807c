// Input and output of the selection kernels: the k best values of every row or part of a row.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearwise::gpu {

// Tie-break of equal values, before their positions.
enum class Ties : std::uint8_t { positions, narrow_ids, wide_ids };

// All pointers are to device memory.
struct SelectionTask {
  const float* values = nullptr;  // [rows, cols]
  std::size_t value_stride = 0;
  // At most one of them; without both, a column's index is its id. Ids that do not break ties are only
  // copied.
  const std::uint32_t* narrow_ids = nullptr;
  const std::int64_t* wide_ids = nullptr;
  std::size_t id_stride = 0;  // 0: one row of ids for all rows
  std::int64_t first_id = 0;  // of the first column, if ids are column indices
  std::size_t rows = 0;
  std::uint32_t cols = 0;  // at most 2^31
  // Per row. Lengths differ by at most one column and are at least k; rows * parts < 2^31.
  std::uint32_t parts = 1;
  std::uint32_t k = 0;
  std::int32_t sign_mask = 0;  // the sign bit if the largest values are the best, else 0
  // Results of part p of row r start at r * best_stride + p * k in both arrays.
  float* best = nullptr;
  std::int64_t* ids = nullptr;
  std::size_t best_stride = 0;
};

}  // namespace nearwise::gpu

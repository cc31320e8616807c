// Distances as they are reported from what is kept of rows in lists.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/lists/list_rows.h"
#include "backend/cpu/rows/row_evaluator.h"
#include "backend/cpu/stream.h"
#include "backend/ops.h"
#include "core/memory.h"

namespace nearwise::cpu {

// For one query after the other, which are to be begun. Not shared by threads.
class CodeEvaluator {
 public:
  static constexpr std::size_t batch = 16;  // rows at a time, at most: decoded, they stay in the first cache

  CodeEvaluator(const CpuStream& stream, const ListSearchArgs& args, const ListNumbers& numbers);
  static std::uint64_t bytes(std::size_t dim, ElementType row_type) {
    return RowEvaluator::bytes(dim) + buffer_bytes(batch * dim, element_size(row_type));
  }

  void begin(std::size_t query) { evaluator_.begin(query); }
  // keys [count] of the rows with these numbers.
  void evaluate(const std::uint32_t* rows, std::size_t count, float* keys);

 private:
  const ListSearchArgs& args_;
  const ListNumbers& numbers_;
  const std::size_t row_bytes_;
  Buffer<std::byte> decoded_;
  const RowsView view_;  // of what was decoded
  RowEvaluator evaluator_;
};

}  // namespace nearwise::cpu

// Reported distances of reconstructions in inverted lists.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/lists/list_rows.h"
#include "backend/cpu/rows/row_evaluator.h"
#include "backend/cpu/stream.h"
#include "backend/ops.h"
#include "core/memory.h"

namespace nearwise::cpu {

// Evaluates one query at a time, set by begin(). Not thread-safe.
class CodeEvaluator {
 public:
  static constexpr std::size_t batch = 16;  // maximum vectors per call; decoded, they fit the L1 cache

  CodeEvaluator(const CpuStream& stream, const ListSearchArgs& args, const ListNumbers& numbers);
  static std::uint64_t bytes(std::size_t dim, ElementType row_type) {
    return RowEvaluator::bytes(dim) + buffer_bytes(batch * dim, element_size(row_type));
  }

  void begin(std::size_t query) { evaluator_.begin(query); }
  // Writes keys [count] of the vectors with these numbers (ListNumbers); infinity where there is no distance.
  void evaluate(const std::uint32_t* rows, std::size_t count, float* keys);

 private:
  const ListSearchArgs& args_;
  const ListNumbers& numbers_;
  const std::size_t row_bytes_;
  Buffer<std::byte> decoded_;
  const RowsView view_;  // of decoded_
  RowEvaluator evaluator_;
};

}  // namespace nearwise::cpu

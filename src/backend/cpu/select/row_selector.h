// Selects the k best values of one row, as keys (selection_key.h).
//
// A threshold estimated from a sample lets slightly more than k values pass the scan. If it is too loose (the
// buffer fills up), it is tightened as often as needed; if it is too strict (fewer than k pass), a second
// scan follows. The result does not depend on the estimate, and memory is fixed. The caller splits rows
// longer than 2^32 - 1 values. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/kernels/key_sorter.h"
#include "backend/cpu/stream.h"
#include "backend/ops.h"
#include "core/memory.h"

namespace nearwise::cpu {

// Order of results with given ids: by image, id, position.
struct KeyOrder {
  RowIds ids;
  bool operator()(std::int64_t left, std::int64_t right) const;
};

class RowSelector {
 public:
  // Budgeted bytes for rows of at most `columns` values.
  static std::uint64_t bytes(std::size_t columns, std::size_t k);

  RowSelector(const CpuStream& stream, std::size_t columns, std::size_t k);

  // The best min(k, count), best first. Valid until the next call.
  std::span<const std::int64_t> select(const float* row, std::size_t count, const RowIds& ids, Order order);

 private:
  struct Row {
    const float* values;
    std::size_t count;
    RowIds ids;
    Order order;
    std::size_t k;  // at most count
  };

  std::int32_t estimate(const Row& row);
  void gather(const Row& row, SelectTest test);
  void encode(const Row& row);
  // Drops keys that cannot be among the best k, so that few more than k remain, and lowers the limit.
  void tighten(const Row& row);
  void tighten_by_ids(const Row& row, std::int32_t below);
  void order_ties(const Row& row);
  void sort();
  void merge(std::size_t run);

  std::size_t count_keys(std::int64_t limit) const;
  void keep_keys(std::int64_t limit);

  const CpuStream& stream_;
  const std::size_t k_;
  const std::size_t capacity_;
  KeySorter sorter_;
  Buffer<std::int64_t> keys_;
  Buffer<std::int64_t> merged_;  // output of a merge; used if keys exceed one sort
  Buffer<std::int32_t> images_;  // of the sample
  std::size_t count_ = 0;        // of keys
  std::int32_t limit_ = 0;       // values with a larger image cannot be among the best k
  std::int32_t lowest_ = 0;      // of the sample
  std::int32_t highest_ = 0;     // no key has a larger image
  // If ids decide among equal values: their image, and the worst id that may still be selected.
  std::int32_t tie_image_ = 0;
  Id worst_id_ = 0;
};

}  // namespace nearwise::cpu

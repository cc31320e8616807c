// How an exact search is cut to fit the memory limit and the threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/ops.h"

namespace nearwise {

struct KnnShape {
  std::size_t queries = 0;
  std::size_t base_rows = 0;
  std::size_t dim = 0;
  std::size_t k = 0;
  int threads = 1;
};

// Up to here looking at the rows as they are costs no more than packing them first. Measured with this number at 0 and at
// 64, on 2 cores with AMX, 2026-11-15: the ways cross between 2 queries (1M x 128 u8) and 5 (1M x 128 f32, 200k x 768 u8).
inline constexpr std::size_t max_direct_queries = 3;

struct KnnPlan {
  bool direct = false;         // few queries: no packing
  std::size_t shards = 1;      // parts of the base searched at once, each with a top-k of its own
  std::size_t query_tile = 0;  // queries at a time
  std::size_t base_block = 0;  // base rows packed at a time, per shard
  std::size_t min_block = 1;   // where memory is less than was thought
  bool keep_block = false;     // until the next one has been shown
};

// A row number inside a shard has 32 bits; one value is left free.
inline constexpr std::size_t max_shard_rows = 0xFFFF'FFFE;

// Memory that the plan may count on.
struct KnnMemory {
  std::uint64_t limit = 0;      // in force, for messages
  std::uint64_t available = 0;  // bytes that may be taken now
  std::uint64_t results = 0;    // bytes of them that the answer itself will take
};

// Throws Error(out_of_memory) naming a limit that would do.
KnnPlan plan_knn(const KnnShape& shape, const KnnCosts& costs, const KnnMemory& memory);

// The same for searches that have no direct way.
KnnPlan plan_blocked_knn(const KnnShape& shape, const KnnCosts& costs, const KnnMemory& memory);

}  // namespace nearwise

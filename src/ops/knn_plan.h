// Tiling of an exact search by memory limit and threads.
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

// Up to this number of queries, scanning unpacked rows is no slower than packing them. Break-even on 2 cores
// with AMX, 2026-11-15: 2 queries (1M x 128 u8) to 5 (1M x 128 f32, 200k x 768 u8).
inline constexpr std::size_t max_direct_queries = 3;

struct KnnPlan {
  bool direct = false;         // scans unpacked rows
  std::size_t shards = 1;      // parts of the base searched concurrently, each with its own top-k
  std::size_t query_tile = 0;  // queries per tile
  std::size_t base_block = 0;  // base rows per packed block of a shard
  std::size_t min_block = 1;   // lower bound if memory turns out scarcer
  bool keep_block = false;     // until the next block is scanned
};

// Row numbers in a shard have 32 bits; one value is reserved.
inline constexpr std::size_t max_shard_rows = 0xFFFF'FFFE;

// Memory available to the plan.
struct KnnMemory {
  std::uint64_t limit = 0;      // for messages
  std::uint64_t available = 0;  // bytes
  std::uint64_t results = 0;    // bytes of them taken by the answer
};

// Working memory that every plan needs, in addition to the answer. direct: of a search that may be direct.
std::uint64_t least_plan_bytes(const KnnShape& shape, const KnnCosts& costs, bool direct);

// Throws Error(out_of_memory) naming a sufficient limit.
KnnPlan plan_knn(const KnnShape& shape, const KnnCosts& costs, const KnnMemory& memory);

// For searches without a direct scan.
KnnPlan plan_blocked_knn(const KnnShape& shape, const KnnCosts& costs, const KnnMemory& memory);

}  // namespace nearwise

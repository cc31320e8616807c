#include "ops/knn_plan.h"

#include <algorithm>

#include "core/checked.h"
#include "core/memory.h"
#include "nearwise/types.h"

namespace nearwise {
namespace {

// Packed rows per block: large enough that the barriers between blocks are cheap.
constexpr std::uint64_t block_bytes = 128 << 20;
// With few queries a block should still be in the L2 cache after packing.
constexpr std::uint64_t block_bytes_per_query = 32 << 10;
constexpr std::uint64_t min_block_bytes = 512 << 10;
// Queries in flight without a memory limit.
constexpr std::uint64_t query_bytes = std::uint64_t{1} << 30;
// Smaller shards are not worth a thread.
constexpr std::size_t min_shard_rows = 4096;

std::uint64_t shard_result_bytes(const KnnShape& shape, std::size_t queries) {
  return std::uint64_t{queries} * shape.k * (sizeof(Id) + sizeof(float)) + 128;
}

// Bytes left after the answer is reserved. Throws if there are fewer than `least`.
std::uint64_t working_memory(const KnnMemory& memory, std::uint64_t least) {
  if (memory.results > memory.available || least > memory.available - memory.results)
    refuse_limit("exact search", memory.limit, memory.limit - memory.available + memory.results + least);
  return memory.available - memory.results;
}

std::size_t needed_shards(const KnnShape& shape) {
  return std::max<std::size_t>(1, divide_up(shape.base_rows, max_shard_rows));
}
std::size_t useful_shards(const KnnShape& shape) {
  return std::max<std::size_t>(1, shape.base_rows / min_shard_rows);
}

// Of a shard of a direct search, without the answer of its own that it holds if there are several.
std::uint64_t direct_bytes(const KnnShape& shape, const KnnCosts& costs) {
  return shape.queries * costs.direct_bytes_per_query + 128;
}

KnnPlan plan_direct(const KnnShape& shape, const KnnCosts& costs, const KnnMemory& memory) {
  const std::size_t needed = needed_shards(shape);
  const std::uint64_t least = least_plan_bytes(shape, costs, true);
  const std::uint64_t shard_bytes = direct_bytes(shape, costs) + shard_result_bytes(shape, shape.queries);
  const std::size_t affordable = working_memory(memory, least) / shard_bytes;
  // Several shards per thread balance the load.
  const std::size_t wanted =
      std::min({useful_shards(shape), std::size_t{8} * static_cast<std::size_t>(shape.threads), affordable});
  return {.direct = true, .shards = std::max(needed, wanted), .query_tile = shape.queries};
}

// Of a plan in blocks with these sizes of its tiles.
std::uint64_t blocked_bytes(const KnnShape& shape, const KnnCosts& costs, std::size_t shards,
                            std::uint64_t queries, std::uint64_t rows) {
  const std::uint64_t padded = round_up<std::uint64_t>(queries, costs.query_granule);
  const std::uint64_t results = shards == 1 ? 0 : shards * shard_result_bytes(shape, queries);
  return shards * (costs.fixed_bytes + padded * costs.bytes_per_query +
                   round_up<std::uint64_t>(rows, costs.base_granule) * costs.blocks_at_once *
                       costs.bytes_per_base_row) +
         results;
}

}  // namespace

std::uint64_t least_plan_bytes(const KnnShape& shape, const KnnCosts& costs, bool direct) {
  const std::size_t shards = needed_shards(shape);
  if (direct && shape.queries <= max_direct_queries)
    return shards *
           (direct_bytes(shape, costs) + (shards == 1 ? 0 : shard_result_bytes(shape, shape.queries)));
  // One granule of queries, and one of base rows per shard.
  return blocked_bytes(shape, costs, shards, std::min(costs.query_granule, shape.queries),
                       costs.base_granule);
}

KnnPlan plan_knn(const KnnShape& shape, const KnnCosts& costs, const KnnMemory& memory) {
  if (shape.queries > max_direct_queries) return plan_blocked_knn(shape, costs, memory);
  return plan_direct(shape, costs, memory);
}

KnnPlan plan_blocked_knn(const KnnShape& shape, const KnnCosts& costs, const KnnMemory& memory) {
  const std::size_t needed = needed_shards(shape);
  const std::uint64_t base_row_bytes = costs.blocks_at_once * costs.bytes_per_base_row;
  const auto bytes_for = [&](std::size_t shards, std::uint64_t queries, std::uint64_t rows) {
    return blocked_bytes(shape, costs, shards, queries, rows);
  };
  const std::uint64_t min_queries = std::min(costs.query_granule, shape.queries);
  const std::uint64_t least = least_plan_bytes(shape, costs, false);
  std::uint64_t available = std::max(least, std::min(working_memory(memory, least), costs.device_bytes));
  available -= std::min(costs.useful_bytes, (available - least) / 4);

  KnnPlan plan;
  plan.keep_block = costs.blocks_at_once > 1;
  plan.min_block = costs.base_granule;
  plan.shards = needed;
  // If the queries do not occupy all threads, the base is split.
  const auto threads = static_cast<std::size_t>(costs.whole_device ? 1 : shape.threads);
  if (threads > 1 && divide_up(shape.queries, costs.query_granule) < 4 * threads) {
    const std::size_t wanted = std::max(needed, std::min(useful_shards(shape), threads));
    if (bytes_for(wanted, min_queries, costs.base_granule) <= available) plan.shards = wanted;
  }

  // Queries take half of the memory, or all but a full-size block of the base.
  const std::uint64_t share = available / plan.shards;
  const std::uint64_t for_queries =
      std::min(query_bytes, std::max(share / 2, share - std::min(share, block_bytes)));
  const std::uint64_t per_query =
      costs.bytes_per_query + (plan.shards == 1 ? 0 : shard_result_bytes(shape, 1));
  std::uint64_t tile = for_queries / per_query / costs.query_granule * costs.query_granule;
  tile = std::clamp<std::uint64_t>(tile, costs.query_granule, round_up(shape.queries, costs.query_granule));
  while (tile > costs.query_granule && bytes_for(plan.shards, tile, costs.base_granule) > available)
    tile -= costs.query_granule;
  plan.query_tile = std::min<std::uint64_t>(tile, shape.queries);

  const std::uint64_t taken = bytes_for(plan.shards, plan.query_tile, 0);
  const std::uint64_t worth =
      costs.whole_device ? block_bytes
                         : std::clamp(plan.query_tile * block_bytes_per_query, min_block_bytes, block_bytes);
  const std::uint64_t for_blocks = std::min(costs.blocks_at_once * worth, (available - taken) / plan.shards);
  const std::uint64_t granules = for_blocks / (base_row_bytes * costs.base_granule);
  plan.base_block = std::max<std::uint64_t>(1, granules) * costs.base_granule;
  return plan;
}

}  // namespace nearwise

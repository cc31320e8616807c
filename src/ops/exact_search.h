// What all exact searches share: checked arguments, the cut into shards and blocks, and the scan of a shard.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/dispatch.h"
#include "core/progress.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "ops/knn_plan.h"

namespace nearwise {

// A point in the middle of the data, for metrics that do not change when queries and base are shifted; else empty.
std::vector<float> centre_of(Stream& stream, const RowsView& base, Metric metric);

// Whether both are f32 rows of whole numbers from 0 to 255 that the backend compares faster as bytes. Reads the base once
// if they are, a little of it if they are not.
bool are_bytes(Stream& stream, const RowsView& queries, const RowsView& base, Metric metric);

// Consecutive rows of the base in the form the backend scans.
struct Block {
  std::size_t first_row = 0;  // in the base
  std::size_t rows = 0;
  std::unique_ptr<PreparedRows> prepared;
};

struct PreparedBase {
  std::vector<float> centre;
  bool bytes = false;
  std::vector<Block> blocks;
};

// Part of the base that one collector searches: its row numbers have 32 bits.
struct Shard {
  std::size_t first_row = 0;
  RowsView rows;
  std::span<const Block> blocks;  // empty: packed block by block as they are scanned
};

// The block that is being scanned, and the one that is being prepared. Declared before the stream that scans, so that the
// blocks go after it, and it has waited for what it queued.
using BlocksInFlight = std::array<std::unique_ptr<PreparedRows>, 2>;

struct ExactSearch {
  const Context& context;
  RowsView queries;
  RowsView base;
  Metric metric;
  KnnPlan plan;
  bool bytes;
  std::span<const float> centre;
  std::span<const Block> blocks;  // of the whole base, or empty
  ProgressMeter& progress;

  std::vector<Shard> shards() const;
  std::unique_ptr<PreparedRows> prepare_queries(Stream& stream, const RowsView& tile,
                                                std::size_t first_query) const;
  // Shows every row of the shard to the collector.
  void scan(Stream& stream, const Shard& shard, const RowsView& tile, const PreparedRows& prepared,
            Collector& found, BlocksInFlight& blocks) const;
};

// Runs work(i) for i in [0, count), at once where there are threads. Errors are kept apart so that the one reported (of
// the lowest i, hence the lowest bad row) does not depend on timing.
void for_each_shard(const Context& context, std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace nearwise

// Shared by all exact searches: shards, blocks, and the scan of a shard.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/dispatch.h"
#include "core/filter.h"
#include "core/progress.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "ops/knn_plan.h"

namespace nearwise {

// An approximate mean of the data for translation-invariant metrics; empty for others.
std::vector<float> centre_of(Stream& stream, const RowsView& base, Metric metric);

// The type that the rows are scanned as: f32 rows of integers from 0 to 255 as bytes, which is faster. Reads
// all rows in that case, else a small part.
ElementType scan_type(Stream& stream, const RowsView& rows, Metric metric);

// The same for both sides of a search: narrower types only where they are equal.
struct ScanTypes {
  ElementType queries = ElementType::f32;
  ElementType base = ElementType::f32;
};
ScanTypes scan_types(Stream& stream, const RowsView& queries, const RowsView& base, Metric metric);

// Consecutive rows of the base, packed.
struct Block {
  std::size_t first_row = 0;  // in the base
  std::size_t rows = 0;
  std::unique_ptr<PreparedRows> prepared;
};

// With more neighbours, coarse scores leave too many rows open, and f32 scores are faster: 1.4 times as fast
// at k = 1000 among 300,000 rows, but half as fast at k = 100 (VNNI, d = 128, 2026-11-18).
inline constexpr std::size_t max_coarse_k = 256;

// Whether a sample of the products differs by more than 8-bit screening loses of them. It does not where all
// rows share a large offset, which only euclidean metrics can move to the origin. Rows on a device: true.
bool suits_coarse_scores(const RowsView& queries, const RowsView& base, Metric metric);

struct PreparedBase {
  std::vector<float> centre;
  ElementType type = ElementType::f32;  // that it is scanned as
  // For queries that it was found to fit: as integers if the base is scanned so.
  ScanTypes types_with(const RowsView& queries) const {
    return {type == ElementType::u8 || type == ElementType::i8 ? type : queries.type(), type};
  }
  std::vector<Block> blocks;
};

// Part of the base with a collector of its own; row numbers have 32 bits.
struct Shard {
  std::size_t first_row = 0;
  RowsView rows;
  std::span<const Block> blocks;  // empty: packed while scanned
};

// The block being scanned and the one being packed. Declared before the stream, whose destructor waits for
// queued work, so that the blocks outlive it.
using BlocksInFlight = std::array<std::unique_ptr<PreparedRows>, 2>;

// The rows of a base that a search compares; by default all of them.
struct RowSelection {
  std::optional<std::span<const std::uint32_t>> rows = {};  // ascending, for a search without packing
  RowBits allowed = {};                                     // for a packed base
  DeniedIds denied = {};                                    // of single queries, in addition
};

struct ExactSearch {
  const Context& context;
  RowsView queries;
  RowsView base;
  Metric metric;
  KnnPlan plan;
  ScanTypes types;
  std::span<const float> centre;
  std::span<const Block> blocks;  // of the whole base; may be empty
  ProgressMeter& progress;
  RowSelection selection = {};
  bool coarse = true;  // PrepareArgs::coarse

  std::vector<Shard> shards() const;
  std::unique_ptr<PreparedRows> prepare_queries(Stream& stream, const RowsView& tile,
                                                std::size_t first_query) const;
  // Scans all rows of the shard into the collector.
  void scan(Stream& stream, const Shard& shard, const PreparedRows& prepared, Collector& found,
            BlocksInFlight& blocks) const;
};

// Runs work(i) for i in [0, count) concurrently. Reports the error of the lowest i, hence of the lowest bad
// row, whatever the timing.
void for_each_shard(const Context& context, std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace nearwise

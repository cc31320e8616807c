// The comparison of a search within a radius with the oracle, at every instruction set.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "nearwise/exact.h"
#include "oracle/range.h"
#include "support/knn_cases.h"

namespace nearwise::support {

// Offsets, ids and the bits of distances, where two answers first differ.
inline ::testing::AssertionResult same(const oracle::RangeAnswer& expected, const RangeNeighbors& given) {
  for (std::size_t i = 0; i < expected.offsets.size() && i < given.offsets.size(); ++i)
    if (expected.offsets[i] != given.offsets[i])
      return ::testing::AssertionFailure()
             << fmt::format("offset {}: expected {}, got {}", i, expected.offsets[i], given.offsets[i]);
  if (expected.offsets.size() != given.offsets.size() || given.ids.size() != expected.ids.size() ||
      given.distances.size() != expected.distances.size())
    return ::testing::AssertionFailure()
           << fmt::format("sizes: expected {} offsets and {} answers, got {} offsets, {} ids, {} distances",
                          expected.offsets.size(), expected.ids.size(), given.offsets.size(),
                          given.ids.size(), given.distances.size());
  for (std::size_t i = 0; i < expected.ids.size(); ++i)
    if (expected.ids[i] != given.ids[i] || std::bit_cast<std::uint32_t>(expected.distances[i]) !=
                                               std::bit_cast<std::uint32_t>(given.distances[i]))
      return ::testing::AssertionFailure()
             << fmt::format("answer {}: expected id {} distance {}, got id {} distance {}", i,
                            expected.ids[i], expected.distances[i], given.ids[i], given.distances[i]);
  return ::testing::AssertionSuccess();
}

// The next radius that excludes what lies exactly on this one.
inline float next_stricter(Metric metric, float radius) {
  const float infinity = std::numeric_limits<float>::infinity();
  return std::nextafter(radius, metric == Metric::inner_product ? infinity : -infinity);
}

// The distance at which the first query has `rank` + 1 answers.
inline float radius_at_rank(RowsView queries, RowsView base, std::size_t rank, Metric metric) {
  return oracle::knn(queries.slice(0, 1), base, rank + 1, metric).distances.back();
}

inline void expect_range(RowsView queries, RowsView base, float radius, Metric metric) {
  const oracle::RangeAnswer expected = oracle::range(queries, base, radius, metric);
  for (const Context& context : every_instruction_set()) {
    EXPECT_TRUE(same(expected, range_search(context, queries, base, radius, {.metric = metric})))
        << "radius " << radius << " at " << context.isa();
    EXPECT_EQ(context.memory_used(), 0U);
  }
}

}  // namespace nearwise::support

// What every index has in common: search by queries and k, or by queries and radius, under a filter.
//
// search() returns the k nearest allowed vectors that it finds for every query, best first, the lower id in a
// tie (GraphIndex names an exception). Rows are padded with no_id where fewer than k vectors are allowed (or
// found, in an approximate index), and nowhere else; exact search without a filter throws instead, unless
// short_rows = pad. range_search() returns all allowed vectors within the radius that it finds, in the same
// order. A filter that allows everything changes nothing. Searches may run concurrently.
// tests/shard/conformance_test.cpp tests every index against this contract.
#pragma once

#include <concepts>
#include <cstddef>

#include "nearwise/context.h"
#include "nearwise/exact.h"
#include "nearwise/filter.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace nearwise {

// SearchOptions is ExactSearchOptions for exact search, IvfSearchOptions for inverted files, and
// GraphSearchOptions for graph indexes; RangeSearchOptions is ExactRangeOptions, IvfRangeOptions and
// GraphSearchOptions.
template <typename Index>
concept Searchable = std::movable<Index> &&
    requires(const Index& index, const Context& context, RowsView queries,
             const typename Index::SearchOptions& options,
             const typename Index::RangeSearchOptions& range_options) {
  { index.search(context, queries, std::size_t{1}, options) } -> std::same_as<Neighbors>;
  { options.filter } -> std::convertible_to<Filter>;
  { index.range_search(context, queries, 1.0F, range_options) } -> std::same_as<RangeNeighbors>;
  { range_options.filter } -> std::convertible_to<Filter>;
  { index.size() } -> std::same_as<std::size_t>;
  { index.metric() } -> std::same_as<Metric>;
};

}  // namespace nearwise

// A graph index and what it should hold, changed side by side.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/distance.h"
#include "io/temporary_folder.h"
#include "nearwise/exact.h"
#include "nearwise/graph_index.h"
#include "support/concurrent_changes.h"
#include "support/ivf_cases.h"
#include "support/knn_cases.h"

namespace nearwise::support {

inline GraphIndex build_index(const RowsView& rows, Metric metric = Metric::sqeuclidean,
                              std::span<const Id> ids = {}) {
  return GraphIndex::build(one_thread(), rows, {.metric = metric, .degree = 16, .ids = ids}, std::nullopt);
}

inline std::string bytes_of(const GraphIndex& index) {
  const testing_io::TemporaryFolder folder;  // tests run at the same time
  save(index, folder / "index.nw");
  std::ifstream file(folder / "index.nw", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Vectors by id. All of them are rows of one pool.
class Content {
 public:
  explicit Content(const RowsView& pool) : pool_(pool) {}

  void set(std::span<const Id> ids, std::size_t first) {
    for (std::size_t i = 0; i < ids.size(); ++i) rows_[ids[i]] = first + i;
  }
  void erase(std::span<const Id> ids) {
    for (const Id id : ids) rows_.erase(id);
  }

  std::size_t size() const { return rows_.size(); }
  std::vector<Id> ids() const {
    std::vector<Id> all;
    for (const auto& [id, row] : rows_) all.push_back(id);
    return all;
  }
  // In ascending order of ids.
  std::vector<std::byte> bytes() const {
    const std::size_t row_bytes = pool_.dim() * element_size(pool_.type());
    std::vector<std::byte> all;
    for (const auto& [id, row] : rows_) all.insert(all.end(), pool_.row(row), pool_.row(row) + row_bytes);
    return all;
  }
  RowsView view(const std::vector<std::byte>& bytes) const {
    return {bytes.data(), pool_.type(), rows_.size(), pool_.dim(), pool_.dim() * element_size(pool_.type())};
  }

  // Exact answers, by ids.
  Neighbors knn(const RowsView& queries, std::size_t k, Metric metric, const Filter& filter = {}) const {
    const std::vector<std::byte> all = bytes();
    const std::vector<Id> names = ids();
    std::vector<std::uint8_t> mask(names.size());
    for (std::size_t row = 0; row < names.size(); ++row) mask[row] = filter.allows(names[row]) ? 1 : 0;
    Neighbors found =
        nearwise::knn(one_thread(), queries, view(all), k,
                      {.metric = metric, .short_rows = ShortRows::pad, .filter = Filter::mask(mask)});
    for (Id& id : std::span(found.ids.data(), queries.rows() * k))
      if (id != no_id) id = names[static_cast<std::size_t>(id)];
    return found;
  }

 private:
  RowsView pool_;
  std::map<Id, std::size_t> rows_;
};

// Equal distances, and ids but for those of the last distance, where changes may have left any of several.
inline ::testing::AssertionResult same_but_last(const Neighbors& expected, const Neighbors& given) {
  for (std::size_t query = 0; query < expected.ids.rows(); ++query) {
    const std::span<const float> distances = expected.distances.row(query);
    for (std::size_t i = 0; i < distances.size(); ++i)
      if (given.distances(query, i) != distances[i] ||
          (given.ids(query, i) != expected.ids(query, i) && distances[i] != distances.back()))
        return ::testing::AssertionFailure() << fmt::format(
                   "query {} rank {}: expected id {} distance {}, got id {} distance {}", query, i,
                   expected.ids(query, i), distances[i], given.ids(query, i), given.distances(query, i));
  }
  return ::testing::AssertionSuccess();
}

// Every answer of the index is that of its content.
inline void expect_content(const GraphIndex& index, const Content& content, const RowsView& queries) {
  const std::vector<Id> ids = content.ids();
  ASSERT_EQ(index.size(), content.size());
  ASSERT_EQ(index.ids(), ids);
  const std::size_t k = std::min<std::size_t>(10, content.size() + 2);
  const std::size_t beam = std::max(k, content.size());
  EXPECT_TRUE(same_but_last(content.knn(queries, k, index.metric()),
                            index.search(one_thread(), queries, k, {.beam = beam})));
  std::vector<Id> some;
  for (std::size_t i = 0; i < ids.size(); i += 2) some.push_back(ids[i]);
  const Filter filter = Filter::allow(some);
  EXPECT_TRUE(same_but_last(content.knn(queries, k, index.metric(), filter),
                            index.search(one_thread(), queries, k, {.beam = beam, .filter = filter})));
  if (ids.empty()) return;
  const std::vector<std::byte> all = content.bytes();
  const float radius = content.knn(queries.slice(0, 1), std::min<std::size_t>(20, ids.size()), index.metric())
                           .distances(0, std::min<std::size_t>(20, ids.size()) - 1);
  const RangeNeighbors exact =
      range_search(one_thread(), queries, content.view(all), radius, {.metric = index.metric()});
  const RangeNeighbors found = index.range_search(one_thread(), queries, radius, {.beam = beam});
  ASSERT_EQ(found.offsets, exact.offsets);
  EXPECT_EQ(found.distances, exact.distances);
  for (std::size_t i = 0; i < found.ids.size(); ++i)
    ASSERT_EQ(found.ids[i], ids[static_cast<std::size_t>(exact.ids[i])]);
  Matrix<float> vectors(ids.size(), index.dim());
  index.get(ids, vectors.view());
  const std::vector<double> values = oracle::to_doubles(content.view(all));
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(static_cast<double>(vectors.data()[i]), values[i]);
}

// Share of the k nearest that a search with this beam finds.
inline double recall_of(const GraphIndex& index, const Content& content, const RowsView& queries,
                        std::size_t k, std::size_t beam) {
  const Neighbors exact = content.knn(queries, k, index.metric());
  const Neighbors found = index.search(one_thread(), queries, k, {.beam = beam});
  std::size_t hits = 0;
  for (std::size_t query = 0; query < queries.rows(); ++query)
    for (const float distance : found.distances.row(query))
      hits += sort_key(index.metric(), distance) <= sort_key(index.metric(), exact.distances(query, k - 1));
  return static_cast<double>(hits) / static_cast<double>(queries.rows() * k);
}

}  // namespace nearwise::support

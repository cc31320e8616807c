// What a search of a graph index reads, which a change makes anew or replaces as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/graph_search.h"
#include "core/filter.h"
#include "core/memory.h"
#include "graph_index/entry_tree.h"
#include "graph_index/graph_rows.h"
#include "graph_index/prepared_graphs.h"
#include "nearwise/context.h"
#include "nearwise/filter.h"

namespace nearwise::graph_index {

// Rows that may be results of all queries.
struct AllowedRows {
  Filter filter;                     // of rows
  std::vector<std::uint64_t> words;  // a bit per row, as RowBits
  std::size_t count = 0;

  RowBits bits() const { return {words.data(), 0}; }
};

inline std::size_t bit_words(std::size_t rows) { return rows / 64 + 2; }
std::shared_ptr<const AllowedRows> allowed_of(std::vector<std::uint64_t> words);

struct SearchedGraph {
  GraphRows rows = {};
  EntryTree entries = {};
  // Rows that are not removed; null: all of them. Searches pass removed rows and do not return them.
  std::shared_ptr<const AllowedRows> live = {};
  std::uint64_t filter_key = 0;  // of what is derived from filters for these rows
  std::unique_ptr<const PreparedGraphs> prepared = {};

  std::size_t live_count() const { return live ? live->count : rows.count(); }
  RowBits live_bits() const { return live ? live->bits() : RowBits(); }
  bool is_live(std::size_t row) const { return live_bits().contains(row); }
  // The bits of live rows without some of them, and with `more` that follow the last; empty if these are all.
  std::vector<std::uint64_t> live_words(std::span<const std::uint32_t> without, std::size_t more = 0) const;

  SearchGraphView view() const { return view_of(rows, entries); }
  SearchGraphView view_of(const GraphRowViews& views, const EntryTree& tree) const {
    return {rows.codec.get(), views.codes, views.nibbles, views.edges, tree.view(), views.vectors};
  }
  // After all other members are set. budget: of memory that is kept between searches.
  void prepare(const Context& context, const std::shared_ptr<MemoryBudget>& budget);
};

}  // namespace nearwise::graph_index

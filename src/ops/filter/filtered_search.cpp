#include "ops/filter/filtered_search.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/distance.h"
#include "ops/exact_knn.h"
#include "ops/filter/filter_strategy.h"
#include "ops/finite_rows.h"
#include "ops/gather_rows.h"
#include "ops/merge_neighbors.h"
#include "ops/range_search.h"

namespace nearwise {
namespace {

// Rows of the base that are searched in one piece: their numbers have 32 bits.
constexpr std::size_t max_piece_rows = std::size_t{1} << 31;
// Gathered at a time, at least: fewer would make blocks too small for a scan.
constexpr std::size_t min_gathered_rows = 4096;
constexpr std::size_t task_queries = 16;

KnnCosts costs_of(const Context& context, const RowsView& queries, const RowsView& base, std::size_t k,
                  Metric metric, const PreparedBase* prepared) {
  const auto stream = open_stream(context);
  const ScanTypes types =
      prepared != nullptr ? prepared->types_with(queries) : ScanTypes{queries.type(), base.type()};
  return dispatch(&Ops::knn_costs, "knn_costs", *stream,
                  KnnCostsArgs{base.dim(), k, metric, types.queries, types.base});
}

// The allowed rows of a piece of the base, as bits.
class AllowedRows {
 public:
  AllowedRows(const Context& context, const Filter& filter, std::size_t rows)
      : rows_(rows), words_(*context.state().budget, rows / 64 + 2) {
    FilterInternals::write_bits(filter, rows, words_.data());
    for (const std::uint64_t word : words_.span()) count_ += static_cast<std::size_t>(std::popcount(word));
  }

  std::size_t count() const { return count_; }
  RowBits bits() const { return {words_.data(), 0}; }
  // The next `most` rows from row `first` on, which moves behind them.
  Buffer<std::uint32_t> numbers(MemoryBudget& budget, std::size_t& first, std::size_t most) const {
    Buffer<std::uint32_t> numbers(budget, most);
    std::size_t count = 0;
    for (; first < rows_ && count < most; first = (first / 64 + 1) * 64) {
      std::uint64_t word = words_[first / 64] >> (first % 64) << (first % 64);
      for (; word != 0 && count < most; word &= word - 1)
        numbers[count++] =
            static_cast<std::uint32_t>(first / 64 * 64 + static_cast<std::size_t>(std::countr_zero(word)));
      if (word != 0) {
        first = first / 64 * 64 + static_cast<std::size_t>(std::countr_zero(word));
        break;
      }
    }
    return numbers;
  }

 private:
  const std::size_t rows_;
  Buffer<std::uint64_t> words_;
  std::size_t count_ = 0;
};

// Copies of rows, wherever the base is.
class GatheredBase {
 public:
  GatheredBase(const Context& context, const RowsView& base, std::span<const std::uint32_t> numbers) {
    if (base.place().kind == DeviceKind::cpu) {
      copies_ = GatheredRows(context, base, numbers);
      view_ = copies_.view();
    } else {
      fetch(context, base, numbers);
    }
    // A scan would name the number of the copy.
    const std::size_t bad = first_not_finite(context, view_);
    if (bad != view_.rows()) refuse_row(RowsRole::base, numbers[bad]);
  }

  const RowsView& view() const { return view_; }

 private:
  // Consecutive rows together.
  void fetch(const Context& context, const RowsView& base, std::span<const std::uint32_t> numbers) {
    const std::size_t row_bytes = row_bytes_of(base);
    fetched_ = Buffer<std::byte>(*context.state().budget, numbers.size() * row_bytes);
    view_ = {fetched_.data(), base.type(), numbers.size(), base.dim(), row_bytes};
    const auto stream = open_stream(context);
    for (std::size_t first = 0; first < numbers.size();) {
      std::size_t end = first + 1;
      while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
      dispatch(&Ops::fetch_rows, "fetch_rows", *stream, base.slice(numbers[first], end - first),
               fetched_.data() + first * row_bytes);
      first = end;
    }
  }

  GatheredRows copies_;
  Buffer<std::byte> fetched_;
  RowsView view_;
};

// What one search under a filter has in common for all its pieces.
struct FilteredSearch {
  const Context& context;
  const RowsView& queries;
  const RowsView& base;
  Metric metric;
  const PreparedBase* prepared;
  const Filter& filter;

  MemoryBudget& budget() const { return *context.state().budget; }

  // The rows that fit in memory together with their packed form.
  std::size_t gathered_rows(std::size_t allowed) const {
    if (budget().limit() == 0) return allowed;
    const std::uint64_t bytes = row_bytes_of(base) + sizeof(std::uint32_t);
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(budget().available() / 4 / bytes,
                                                              std::min(allowed, min_gathered_rows), allowed));
  }

  FilterStrategy strategy(const AllowedRows& rows, std::size_t k) const {
    const KnnCosts costs = costs_of(context, queries, base, k, metric, prepared);
    // Biases and bits of a block, for as many blocks as there are shards at most.
    const std::uint64_t mask_bytes = base.rows() * std::uint64_t{9};
    return choose_filter_strategy(
        {.queries = queries.rows(),
         .rows = base.rows(),
         .allowed = rows.count(),
         .row_bytes = row_bytes_of(base),
         .pair_ns = costs.pair_ns,
         .has_direct = context.state().backend.ops.knn_direct != nullptr,
         .can_mask = prepared != nullptr && costs.masks_rows && mask_bytes <= budget().available() / 2});
  }

  // search(rows, numbers, denied) for the allowed rows, gathered in as many parts as memory needs.
  template <typename Search>
  void for_each_gathered(const AllowedRows& rows, const DeniedIds& denied, const Search& search) const {
    const std::size_t part = gathered_rows(rows.count());
    std::size_t first = 0;
    for (std::size_t done = 0; done < rows.count(); done += part) {
      const Buffer<std::uint32_t> numbers =
          rows.numbers(budget(), first, std::min(part, rows.count() - done));
      const GatheredBase gathered(context, base, numbers.span());
      search(gathered.view(), numbers.span(), denied.of_gathered(numbers.data()));
    }
  }
};

void name_rows(Neighbors& found, std::span<const std::uint32_t> numbers) {
  for (Id& id : std::span(found.ids.data(), found.ids.rows() * found.ids.cols()))
    if (id != no_id) id = static_cast<Id>(numbers[static_cast<std::size_t>(id)]);
}

Neighbors merged(const Context& context, Metric metric, const Neighbors& left, const Neighbors& right) {
  Neighbors best{Matrix<Id>(left.ids.rows(), left.ids.cols()),
                 Matrix<float>(left.ids.rows(), left.ids.cols())};
  const NeighborsView parts[] = {{left.ids.view(), left.distances.view()},
                                 {right.ids.view(), right.distances.view()}};
  merge_neighbors(*context.state().threads, metric, parts, best.ids.view(), best.distances.view());
  return best;
}

Neighbors search_without(const FilteredSearch& search, const RowsView& base, std::size_t k,
                         const PreparedBase* prepared, const DeniedIds& denied) {
  if (denied.any() &&
      !costs_of(search.context, search.queries, base, k, search.metric, prepared).denies_ids) {
    const std::size_t wanted = std::min(k + denied.longest(), std::max(k, base.rows()));
    return drop_denied(search_rows(search.context, search.queries, base, wanted, search.metric, prepared, {}),
                       k, denied, search.metric);
  }
  return search_rows(search.context, search.queries, base, k, search.metric, prepared, {.denied = denied});
}

// Every query has a list of its own: its rows are compared where they are.
Neighbors search_lists(const FilteredSearch& search, std::size_t k) {
  const Context::State& state = search.context.state();
  const RowsView& queries = search.queries;
  Neighbors result{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
  const auto rows_of = [&](std::size_t query) {
    std::vector<std::uint32_t> rows;
    for (const Id id : FilterInternals::allowed(search.filter, query))
      if (static_cast<std::size_t>(id) < search.base.rows()) rows.push_back(static_cast<std::uint32_t>(id));
    return rows;
  };
  if (state.backend.ops.knn_direct == nullptr) {
    const Context quiet = search.context.without_progress();
    for (std::size_t query = 0; query < queries.rows(); ++query) {
      const std::vector<std::uint32_t> rows = rows_of(query);
      const GatheredBase gathered(quiet, search.base, rows);
      Neighbors found =
          search_rows(quiet, queries.slice(query, 1), gathered.view(), k, search.metric, nullptr, {});
      name_rows(found, rows);
      std::ranges::copy(found.ids.row(0), result.ids.row(query).begin());
      std::ranges::copy(found.distances.row(0), result.distances.row(query).begin());
    }
    return result;
  }
  state.threads->for_each(divide_up(queries.rows(), task_queries), [&](std::size_t task) {
    const auto stream = open_stream(search.context);
    const std::size_t end = std::min(queries.rows(), (task + 1) * task_queries);
    for (std::size_t query = task * task_queries; query < end; ++query) {
      const std::vector<std::uint32_t> rows = rows_of(query);
      dispatch(&Ops::knn_direct, "knn_direct", *stream,
               KnnDirectArgs{.queries = queries.slice(query, 1),
                             .base = search.base,
                             .metric = search.metric,
                             .k = k,
                             .ids = result.ids.view().slice(query, 1),
                             .distances = result.distances.view().slice(query, 1),
                             .rows = std::span<const std::uint32_t>(rows)});
    }
  });
  return result;
}

Neighbors search_piece(const FilteredSearch& search, std::size_t k) {
  const DeniedIds denied = FilterInternals::denied(search.filter);
  if (!FilterInternals::is_shared(search.filter))
    return search_without(search, search.base, k, search.prepared, denied);
  const AllowedRows rows(search.context, search.filter, search.base.rows());
  if (rows.count() == search.base.rows())
    return search_without(search, search.base, k, search.prepared, denied);
  if (rows.count() == 0) return search_without(search, search.base.slice(0, 0), k, nullptr, denied);
  switch (search.strategy(rows, k)) {
    case FilterStrategy::direct: {
      std::size_t first = 0;
      const Buffer<std::uint32_t> numbers = rows.numbers(search.budget(), first, rows.count());
      return search_rows(search.context, search.queries, search.base, k, search.metric, nullptr,
                         {.rows = numbers.span(), .denied = denied});
    }
    case FilterStrategy::mask:
      return search_rows(search.context, search.queries, search.base, k, search.metric, search.prepared,
                         {.allowed = rows.bits(), .denied = denied});
    case FilterStrategy::gather: break;
  }
  std::optional<Neighbors> best;
  search.for_each_gathered(
      rows, denied,
      [&](const RowsView& gathered, std::span<const std::uint32_t> numbers, const DeniedIds& own) {
        Neighbors found = search_without(search, gathered, k, nullptr, own);
        name_rows(found, numbers);
        best = best ? merged(search.context, search.metric, *best, found) : std::move(found);
      });
  return std::move(*best);
}

}  // namespace

void check_filter(const char* operation, const Filter& filter, std::size_t queries) {
  require(filter.queries().value_or(queries) == queries,
          "{}: the filter must have a list for every query, {}, got {}", operation, queries,
          filter.queries().value_or(0));
}

Neighbors padding(std::size_t queries, std::size_t k, Metric metric) {
  Neighbors none{Matrix<Id>(queries, k), Matrix<float>(queries, k)};
  std::fill_n(none.ids.data(), queries * k, no_id);
  std::fill_n(none.distances.data(), queries * k, padding_distance(metric));
  return none;
}

Neighbors drop_denied(const Neighbors& found, std::size_t k, const DeniedIds& denied, Metric metric) {
  Neighbors rest{Matrix<Id>(found.ids.rows(), k), Matrix<float>(found.ids.rows(), k)};
  for (std::size_t query = 0; query < found.ids.rows(); ++query) {
    std::size_t out = 0;
    for (std::size_t i = 0; i < found.ids.cols() && out < k; ++i) {
      const Id id = found.ids(query, i);
      if (id == no_id || denied.contains(query, static_cast<std::size_t>(id))) continue;
      rest.ids(query, out) = id;
      rest.distances(query, out++) = found.distances(query, i);
    }
    for (; out < k; ++out) {
      rest.ids(query, out) = no_id;
      rest.distances(query, out) = padding_distance(metric);
    }
  }
  return rest;
}

Neighbors search_allowed(const Context& context, const RowsView& queries, const RowsView& base, std::size_t k,
                         Metric metric, const PreparedBase* prepared, const Filter& filter) {
  if (FilterInternals::per_query(filter) == FilterInternals::PerQuery::allow)
    return search_lists({context, queries, base, metric, prepared, filter}, k);
  if (base.rows() <= max_piece_rows)
    return search_piece({context, queries, base, metric, prepared, filter}, k);
  std::optional<Neighbors> best;
  for (std::size_t first = 0; first < base.rows(); first += max_piece_rows) {
    const RowsView piece = base.slice(first, std::min(max_piece_rows, base.rows() - first));
    const Filter own = filter.from_id(static_cast<Id>(first));
    Neighbors found = search_piece({context, queries, piece, metric, nullptr, own}, k);
    for (Id& id : std::span(found.ids.data(), queries.rows() * k))
      if (id != no_id) id += static_cast<Id>(first);
    best = best ? merged(context, metric, *best, found) : std::move(found);
  }
  return std::move(*best);
}

namespace {

// Answers in the order of the queries, each of them complete.
class RangeParts {
 public:
  explicit RangeParts(std::size_t queries) : rows_(queries) {}

  template <typename NameOf>
  void add(std::size_t first_query, const RangeNeighbors& found, const NameOf& name_of) {
    for (std::size_t query = 0; query + 1 < found.offsets.size(); ++query)
      for (std::size_t i = found.offsets[query]; i < found.offsets[query + 1]; ++i) {
        rows_[first_query + query].ids.push_back(name_of(first_query + query, found.ids[i]));
        rows_[first_query + query].distances.push_back(found.distances[i]);
      }
  }
  // Without those that the queries' own lists deny.
  RangeNeighbors joined(Metric metric, const DeniedIds& denied) {
    RangeNeighbors all;
    all.offsets.push_back(0);
    for (std::size_t query = 0; query < rows_.size(); ++query) {
      sort_range_row(metric, rows_[query]);
      for (std::size_t i = 0; i < rows_[query].ids.size(); ++i) {
        if (denied.contains(query, static_cast<std::size_t>(rows_[query].ids[i]))) continue;
        all.ids.push_back(rows_[query].ids[i]);
        all.distances.push_back(rows_[query].distances[i]);
      }
      all.offsets.push_back(all.ids.size());
    }
    return all;
  }

 private:
  std::vector<RangeRow> rows_;
};

void add_range_piece(const FilteredSearch& search, float radius, std::size_t first_row, RangeParts& parts) {
  const auto add = [&](const RangeNeighbors& found, const auto& row_of) {
    parts.add(0, found, [&](std::size_t, Id id) {
      return static_cast<Id>(first_row + row_of(static_cast<std::size_t>(id)));
    });
  };
  const auto all_rows = [](std::size_t row) { return row; };
  if (!FilterInternals::is_shared(search.filter)) {
    add(search_range_rows(search.context, search.queries, search.base, radius, search.metric, search.prepared,
                          {}),
        all_rows);
    return;
  }
  const AllowedRows rows(search.context, search.filter, search.base.rows());
  constexpr std::size_t like_k = 64;
  FilterStrategy strategy = search.strategy(rows, like_k);
  if (strategy == FilterStrategy::mask || rows.count() == search.base.rows()) {
    const RowSelection selection = {.allowed = rows.count() == search.base.rows() ? RowBits() : rows.bits()};
    add(search_range_rows(search.context, search.queries, search.base, radius, search.metric, search.prepared,
                          selection),
        all_rows);
    return;
  }
  search.for_each_gathered(
      rows, {}, [&](const RowsView& gathered, std::span<const std::uint32_t> numbers, const DeniedIds&) {
        add(search_range_rows(search.context, search.queries, gathered, radius, search.metric, nullptr, {}),
            [&](std::size_t row) { return std::size_t{numbers[row]}; });
      });
}

}  // namespace

RangeNeighbors search_range_allowed(const Context& context, const RowsView& queries, const RowsView& base,
                                    float radius, Metric metric, const PreparedBase* prepared,
                                    const Filter& filter) {
  RangeParts parts(queries.rows());
  if (FilterInternals::per_query(filter) == FilterInternals::PerQuery::allow) {
    for (std::size_t query = 0; query < queries.rows(); ++query) {
      std::vector<std::uint32_t> rows;
      for (const Id id : FilterInternals::allowed(filter, query))
        if (static_cast<std::size_t>(id) < base.rows()) rows.push_back(static_cast<std::uint32_t>(id));
      const GatheredBase gathered(context, base, rows);
      parts.add(
          query,
          search_range_rows(context, queries.slice(query, 1), gathered.view(), radius, metric, nullptr, {}),
          [&](std::size_t, Id id) { return static_cast<Id>(rows[static_cast<std::size_t>(id)]); });
    }
    return parts.joined(metric, {});
  }
  for (std::size_t first = 0; first < base.rows(); first += max_piece_rows) {
    const RowsView piece = base.slice(first, std::min(max_piece_rows, base.rows() - first));
    const Filter own = filter.from_id(static_cast<Id>(first));
    add_range_piece({context, queries, piece, metric, piece.rows() == base.rows() ? prepared : nullptr, own},
                    radius, first, parts);
  }
  return parts.joined(metric, FilterInternals::denied(filter));
}

}  // namespace nearwise

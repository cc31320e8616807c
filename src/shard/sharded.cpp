// Sharded and Replicated: who searches what, and how the answers become one.
#include "nearwise/sharded.h"

#include <algorithm>

#include "backend/context_state.h"
#include "core/checked.h"
#include "ops/exact_knn.h"
#include "ops/filter/filtered_search.h"
#include "ops/memory_limit.h"
#include "ops/range_search.h"
#include "shard/at_once.h"
#include "shard/merge_parts.h"

namespace nearwise::shard {
namespace {

void check_members(const char* kind, const Members& members) {
  require(!members.empty(), "{}: at least one index is needed, got none", kind);
  for (const Member& member : members)
    require(member.metric == members.front().metric,
            "{}: all indexes must have the same metric, got {} and {}", kind, name(members.front().metric),
            name(member.metric));
  for (const Member& member : members)
    require(member.ivf == nullptr || member.ivf->has_same_quantizers(*members.front().ivf),
            "{}: all inverted files must have the same quantizers, from one training", kind);
}

std::uint64_t answer_bytes(std::size_t queries, std::size_t k, std::size_t answers, const char* operation) {
  const std::uint64_t entries = checked_multiply(checked_multiply(queries, k, operation), answers, operation);
  return checked_multiply(entries, std::uint64_t{sizeof(Id) + sizeof(float)}, operation);
}

// Consecutive queries for each copy.
struct Slices {
  std::size_t queries = 0;
  std::size_t copies = 0;

  std::size_t first(std::size_t copy) const { return queries * copy / copies; }
};

// The options of a search of some of the queries.
template <typename Options>
Options options_of(const Options& options, std::size_t first, std::size_t count) {
  Options own = options;
  if (options.filter.queries()) own.filter = options.filter.from_query(first, count);
  return own;
}

// Calls search_some(copy, context, first query, their number) for every copy. A copy numbers its own queries
// only, so an error message names the first of them.
template <typename SearchSome>
void for_each_slice(const char* operation, const Context& context, const Members& copies,
                    const Slices& slices, const SearchSome& search_some) {
  const auto run = [&](std::size_t copy, const Context& own) {
    const std::size_t first = slices.first(copy);
    try {
      search_some(copy, own, first, slices.first(copy + 1) - first);
    } catch (const Error& error) {
      if (first == 0 || error.code() != ErrorCode::invalid_argument) throw;
      fail(ErrorCode::invalid_argument, "{} (counted from query {})", error.what(), first);
    }
  };
  Work work = {.operation = operation, .units = {}, .run = run};
  for (std::size_t copy = 0; copy < copies.size(); ++copy)
    work.units.push_back(slices.first(copy + 1) - slices.first(copy));
  run_at_once(context, copies, work);
}

void number_from(Neighbors& answer, Id first) {
  const std::size_t entries = answer.ids.rows() * answer.ids.cols();
  for (Id& id : std::span(answer.ids.data(), entries))
    if (id != no_id) id += first;
}

}  // namespace

std::size_t rows_of(const Members& parts) {
  std::size_t rows = 0;
  for (const Member& part : parts) rows += part.size;
  return rows;
}

void check_parts(const Members& parts) { check_members("Sharded", parts); }

void check_copies(const Members& copies) {
  check_members("Replicated", copies);
  for (const Member& copy : copies)
    require(copy.size == copies.front().size,
            "Replicated: all indexes must hold the same rows, got {} and {}", copies.front().size, copy.size);
}

Neighbors search_parts(const Context& context, const Members& parts, RowsView queries, std::size_t k,
                       const ExactSearchOptions& options, const Search<ExactSearchOptions>& search) {
  constexpr const char* operation = "knn";
  check_k(operation, k, rows_of(parts), {.short_rows = options.short_rows, .filter = options.filter});
  std::vector<Id> first_rows;
  Id first_row = 0;
  for (const Member& part : parts) {
    first_rows.push_back(first_row);
    first_row += static_cast<Id>(part.size);
  }
  const auto numbered = [&](std::size_t part, const Context& own, RowsView of_part, std::size_t count,
                            const ExactSearchOptions&) {
    Neighbors found =
        search(part, own, of_part, count,
               {.short_rows = ShortRows::pad, .filter = options.filter.from_id(first_rows[part])});
    number_from(found, first_rows[part]);
    return found;
  };
  return merge_parts<ExactSearchOptions>(operation, context, parts, queries, k, options, numbered, operation);
}

namespace {

template <typename Options>
Neighbors search_slices(const char* operation, const Context& context, const Members& copies,
                        RowsView queries, std::size_t k, const Options& options,
                        const Search<Options>& search) {
  // Errors that concern all queries are found before any query is searched.
  check_filter(operation, options.filter, queries.rows());
  static_cast<void>(search(0, copies.front().context, queries.slice(0, 0), k, options_of(options, 0, 0)));
  const std::uint64_t bytes = answer_bytes(queries.rows(), k, 2, operation);
  check_memory(operation, context, bytes);
  const Reservation reservation(*context.state().budget, bytes);
  Neighbors joined{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
  for_each_slice(operation, context, copies, {queries.rows(), copies.size()},
                 [&](std::size_t copy, const Context& own, std::size_t first, std::size_t count) {
                   const Neighbors answer =
                       search(copy, own, queries.slice(first, count), k, options_of(options, first, count));
                   std::copy_n(answer.ids.data(), count * k, joined.ids.data() + first * k);
                   std::copy_n(answer.distances.data(), count * k, joined.distances.data() + first * k);
                 });
  return joined;
}

}  // namespace

Neighbors search_copies(const Context& context, const Members& copies, RowsView queries, std::size_t k,
                        const ExactSearchOptions& options, const Search<ExactSearchOptions>& search) {
  check_k("knn", k, copies.front().size, {.short_rows = options.short_rows, .filter = options.filter});
  return search_slices("knn", context, copies, queries, k,
                       ExactSearchOptions{.short_rows = ShortRows::pad, .filter = options.filter}, search);
}

Neighbors search_copies(const Context& context, const Members& copies, RowsView queries, std::size_t k,
                        const IvfSearchOptions& options, const Search<IvfSearchOptions>& search) {
  return search_slices("search", context, copies, queries, k, options, search);
}

Neighbors search_copies(const Context& context, const Members& copies, RowsView queries, std::size_t k,
                        const GraphSearchOptions& options, const Search<GraphSearchOptions>& search) {
  return search_slices("search", context, copies, queries, k, options, search);
}

namespace {

// The answers of the members and the joined ones. How many there are is not known before.
Reservation reserve_ranges(const char* operation, const Context& context,
                           std::span<const RangeNeighbors> answers) {
  std::uint64_t count = 0;
  for (const RangeNeighbors& answer : answers) count += answer.ids.size();
  const std::uint64_t bytes = 2 * count * (sizeof(Id) + sizeof(float));
  check_memory(operation, context, bytes);
  return {*context.state().budget, bytes};
}

void append(RangeNeighbors& joined, std::span<const Id> ids, std::span<const float> distances) {
  joined.ids.insert(joined.ids.end(), ids.begin(), ids.end());
  joined.distances.insert(joined.distances.end(), distances.begin(), distances.end());
  joined.offsets.push_back(joined.ids.size());
}

// Options of each part, and what is added to its ids.
template <typename Options>
struct PartRange {
  Options options;
  Id first_id = 0;
};

template <typename Options>
RangeNeighbors search_ranges_of_parts(const char* operation, const Context& context, const Members& parts,
                                      RowsView queries, float radius,
                                      const std::vector<PartRange<Options>>& of_parts,
                                      const RangeSearch<Options>& search) {
  std::vector<RangeNeighbors> answers(parts.size());
  Work work = {.operation = operation, .units = {}, .run = [&](std::size_t part, const Context& own) {
                 answers[part] = search(part, own, queries, radius, of_parts[part].options);
               }};
  for (const Member& part : parts) work.units.push_back(std::max<std::size_t>(1, part.size));
  run_at_once(context, parts, work);

  const Reservation reservation = reserve_ranges(operation, context, answers);
  RangeNeighbors joined;
  joined.offsets.push_back(0);
  for (std::size_t query = 0; query < queries.rows(); ++query) {
    RangeRow row;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      const RangeNeighbors& answer = answers[part];
      for (std::size_t i = answer.offsets[query]; i < answer.offsets[query + 1]; ++i) {
        row.ids.push_back(answer.ids[i] + of_parts[part].first_id);
        row.distances.push_back(answer.distances[i]);
      }
    }
    sort_range_row(parts.front().metric, row);
    append(joined, row.ids, row.distances);
  }
  return joined;
}

template <typename Options>
RangeNeighbors search_ranges_of_copies(const char* operation, const Context& context, const Members& copies,
                                       RowsView queries, float radius, const Options& options,
                                       const RangeSearch<Options>& search) {
  check_filter(operation, options.filter, queries.rows());
  static_cast<void>(
      search(0, copies.front().context, queries.slice(0, 0), radius, options_of(options, 0, 0)));
  std::vector<RangeNeighbors> answers(copies.size());
  for_each_slice(operation, context, copies, {queries.rows(), copies.size()},
                 [&](std::size_t copy, const Context& own, std::size_t first, std::size_t count) {
                   answers[copy] = search(copy, own, queries.slice(first, count), radius,
                                          options_of(options, first, count));
                 });
  const Reservation reservation = reserve_ranges(operation, context, answers);
  RangeNeighbors joined;
  joined.offsets.push_back(0);
  for (const RangeNeighbors& answer : answers)
    for (std::size_t query = 0; query + 1 < answer.offsets.size(); ++query) {
      const std::size_t begin = answer.offsets[query];
      const std::size_t count = answer.offsets[query + 1] - begin;
      append(joined, std::span(answer.ids).subspan(begin, count),
             std::span(answer.distances).subspan(begin, count));
    }
  return joined;
}

constexpr const char* exact_range = "range_search";
constexpr const char* ivf_range = "Ivf.range_search";
constexpr const char* graph_range = "GraphIndex.range_search";

}  // namespace

RangeNeighbors range_search_parts(const Context& context, const Members& parts, RowsView queries,
                                  float radius, const ExactRangeOptions& options,
                                  const RangeSearch<ExactRangeOptions>& search) {
  std::vector<PartRange<ExactRangeOptions>> of_parts;
  Id first_row = 0;
  for (const Member& part : parts) {
    of_parts.push_back({{.filter = options.filter.from_id(first_row)}, first_row});
    first_row += static_cast<Id>(part.size);
  }
  return search_ranges_of_parts(exact_range, context, parts, queries, radius, of_parts, search);
}

RangeNeighbors range_search_parts(const Context& context, const Members& parts, RowsView queries,
                                  float radius, const IvfRangeOptions& options,
                                  const RangeSearch<IvfRangeOptions>& search) {
  PartRange<IvfRangeOptions> of_part = {options};
  if (!options.probes) of_part.options.probes = parts.front().ivf->probes();
  const std::vector<PartRange<IvfRangeOptions>> of_parts(parts.size(), of_part);
  return search_ranges_of_parts(ivf_range, context, parts, queries, radius, of_parts, search);
}

RangeNeighbors range_search_parts(const Context& context, const Members& parts, RowsView queries,
                                  float radius, const GraphSearchOptions& options,
                                  const RangeSearch<GraphSearchOptions>& search) {
  const std::vector<PartRange<GraphSearchOptions>> of_parts(parts.size(), {options});
  return search_ranges_of_parts(graph_range, context, parts, queries, radius, of_parts, search);
}

RangeNeighbors range_search_copies(const Context& context, const Members& copies, RowsView queries,
                                   float radius, const ExactRangeOptions& options,
                                   const RangeSearch<ExactRangeOptions>& search) {
  return search_ranges_of_copies(exact_range, context, copies, queries, radius, options, search);
}

RangeNeighbors range_search_copies(const Context& context, const Members& copies, RowsView queries,
                                   float radius, const IvfRangeOptions& options,
                                   const RangeSearch<IvfRangeOptions>& search) {
  return search_ranges_of_copies(ivf_range, context, copies, queries, radius, options, search);
}

RangeNeighbors range_search_copies(const Context& context, const Members& copies, RowsView queries,
                                   float radius, const GraphSearchOptions& options,
                                   const RangeSearch<GraphSearchOptions>& search) {
  return search_ranges_of_copies(graph_range, context, copies, queries, radius, options, search);
}

}  // namespace nearwise::shard

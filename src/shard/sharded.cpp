// Sharded and Replicated: who searches what, and how the answers become one.
#include "nearwise/sharded.h"

#include <algorithm>

#include "backend/context_state.h"
#include "core/checked.h"
#include "ops/exact_knn.h"
#include "ops/filtered_search.h"
#include "ops/merge_neighbors.h"
#include "shard/at_once.h"

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

// A copy numbers its own queries only, so an error message names the first of them.
template <typename SearchSome>
Neighbors search_from(std::size_t first, const SearchSome& search) {
  try {
    return search();
  } catch (const Error& error) {
    if (first == 0 || error.code() != ErrorCode::invalid_argument) throw;
    fail(ErrorCode::invalid_argument, "{} (counted from query {})", error.what(), first);
  }
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
  // The results of the parts and the merged one.
  const Reservation reservation(*context.state().budget,
                                answer_bytes(queries.rows(), k, parts.size() + 1, operation));
  std::vector<Neighbors> answers(parts.size());
  std::vector<ExactSearchOptions> of_parts;
  Id first_row = 0;
  for (const Member& part : parts) {
    of_parts.push_back({.short_rows = ShortRows::pad, .filter = options.filter.from_id(first_row)});
    first_row += static_cast<Id>(part.size);
  }
  Work work = {.operation = operation, .units = {}, .run = [&](std::size_t part, const Context& own) {
                 answers[part] = search(part, own, queries, k, of_parts[part]);
               }};
  // Parts without vectors are searched too, since they check the arguments.
  for (const Member& part : parts) work.units.push_back(std::max<std::size_t>(1, part.size));
  run_at_once(context, parts, work);

  std::vector<NeighborsView> views;
  Id first = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    number_from(answers[i], first);
    first += static_cast<Id>(parts[i].size);
    views.push_back({answers[i].ids.view(), answers[i].distances.view()});
  }
  Neighbors joined{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
  merge_neighbors(*context.state().threads, parts.front().metric, views, joined.ids.view(),
                  joined.distances.view());
  return joined;
}

namespace {

template <typename Options>
Neighbors search_slices(const char* operation, const Context& context, const Members& copies,
                        RowsView queries, std::size_t k, const Options& options,
                        const Search<Options>& search) {
  // Errors that concern all queries are found before any query is searched.
  check_filter(operation, options.filter, queries.rows());
  const auto options_of = [&](std::size_t first, std::size_t count) {
    Options own = options;
    if (options.filter.queries()) own.filter = options.filter.from_query(first, count);
    return own;
  };
  static_cast<void>(search(0, copies.front().context, queries.slice(0, 0), k, options_of(0, 0)));
  const Reservation reservation(*context.state().budget, answer_bytes(queries.rows(), k, 2, operation));
  Neighbors joined{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
  const auto first_query = [&](std::size_t copy) { return queries.rows() * copy / copies.size(); };
  const auto search_some = [&](std::size_t copy, const Context& own) {
    const std::size_t first = first_query(copy);
    const RowsView some = queries.slice(first, first_query(copy + 1) - first);
    const Neighbors answer =
        search_from(first, [&] { return search(copy, own, some, k, options_of(first, some.rows())); });
    std::copy_n(answer.ids.data(), some.rows() * k, joined.ids.data() + first * k);
    std::copy_n(answer.distances.data(), some.rows() * k, joined.distances.data() + first * k);
  };
  Work work = {.operation = operation, .units = {}, .run = search_some};
  for (std::size_t copy = 0; copy < copies.size(); ++copy)
    work.units.push_back(first_query(copy + 1) - first_query(copy));
  run_at_once(context, copies, work);
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

}  // namespace nearwise::shard

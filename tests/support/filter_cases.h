// Filters of generated cases, and the answers of a search under them by the definition.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "nearwise/filter.h"
#include "oracle/knn.h"
#include "oracle/range.h"
#include "support/problems.h"

namespace nearwise::support {

enum class FilterKind : std::uint8_t { mask, short_mask, allow, deny, allow_per_query, deny_per_query, both };
inline constexpr std::array every_filter_kind = {
    FilterKind::mask, FilterKind::short_mask,      FilterKind::allow,
    FilterKind::deny, FilterKind::allow_per_query, FilterKind::deny_per_query,
    FilterKind::both};

inline std::string_view name(FilterKind kind) {
  constexpr std::array<std::string_view, every_filter_kind.size()> names = {
      "mask", "short mask", "allow", "deny", "allow per query", "deny per query", "both"};
  return names[static_cast<std::size_t>(kind)];
}

using Allows = std::function<bool(std::size_t query, Id id)>;

struct FilterCase {
  Filter filter;
  Allows allows;
};

// A share of `density` of the ids [0, rows) is allowed; ids beyond them are listed too.
inline FilterCase make_filter(FilterKind kind, std::size_t rows, std::size_t queries, double density,
                              std::uint64_t seed) {
  const Random random = random_for(seed, Purpose::shapes);
  const auto drawn = [=](std::size_t query, std::size_t id) {
    return random.uniform(7 * id + 1'000'003 * query) < density;
  };
  const auto shared = [=](std::size_t, Id id) { return drawn(0, static_cast<std::size_t>(id)); };
  std::vector<std::uint8_t> mask(rows + 70);
  std::vector<Id> allowed;
  std::vector<Id> denied;
  for (std::size_t id = 0; id < rows + 70; ++id) {
    mask[id] = drawn(0, id) ? static_cast<std::uint8_t>(1 + id % 255) : 0;
    (drawn(0, id) ? allowed : denied).push_back(static_cast<Id>(id));
  }
  std::ranges::reverse(allowed);
  if (!denied.empty()) denied.push_back(denied.front());
  std::vector<std::size_t> offsets = {0};
  std::vector<Id> listed;
  const auto list = [&](bool allows) {
    for (std::size_t query = 0; query < queries; ++query) {
      for (std::size_t id = rows + 70; id-- > 0;)
        if (drawn(query + 1, id) == allows) listed.push_back(static_cast<Id>(id));
      offsets.push_back(listed.size());
    }
  };
  const auto own = [=](std::size_t query, Id id) { return drawn(query + 1, static_cast<std::size_t>(id)); };
  switch (kind) {
    case FilterKind::mask: return {Filter::mask(mask), shared};
    case FilterKind::short_mask: {
      const std::size_t half = rows / 2;
      return {Filter::mask(std::span(mask).first(half)), [=](std::size_t query, Id id) {
                return static_cast<std::size_t>(id) < half && shared(query, id);
              }};
    }
    case FilterKind::allow: return {Filter::allow(allowed), shared};
    case FilterKind::deny: return {Filter::deny(denied), shared};
    case FilterKind::allow_per_query: list(true); return {Filter::allow_per_query(offsets, listed), own};
    case FilterKind::deny_per_query: list(false); return {Filter::deny_per_query(offsets, listed), own};
    case FilterKind::both: break;
  }
  list(false);
  return {Filter::mask(mask) & Filter::deny_per_query(offsets, listed),
          [=](std::size_t query, Id id) { return shared(query, id) && own(query, id); }};
}

inline oracle::Answer filtered_answer(RowsView queries, RowsView base, std::size_t k, Metric metric,
                                      const Allows& allows) {
  oracle::Answer answer{queries.rows(), k, {}, {}};
  const std::size_t all = std::max<std::size_t>(1, base.rows());
  const oracle::Answer sorted = oracle::knn(queries, base, all, metric);
  for (std::size_t query = 0; query < queries.rows(); ++query) {
    std::size_t rank = 0;
    for (std::size_t i = query * all; i < (query + 1) * all && rank < k; ++i) {
      if (sorted.ids[i] == no_id || !allows(query, sorted.ids[i])) continue;
      answer.ids.push_back(sorted.ids[i]);
      answer.distances.push_back(sorted.distances[i]);
      ++rank;
    }
    for (; rank < k; ++rank) {
      answer.ids.push_back(no_id);
      answer.distances.push_back(oracle::worst_value(metric));
    }
  }
  return answer;
}

inline oracle::RangeAnswer filtered_range(RowsView queries, RowsView base, float radius, Metric metric,
                                          const Allows& allows) {
  const oracle::RangeAnswer all = oracle::range(queries, base, radius, metric);
  oracle::RangeAnswer answer{{0}, {}, {}};
  for (std::size_t query = 0; query < queries.rows(); ++query) {
    for (std::size_t i = all.offsets[query]; i < all.offsets[query + 1]; ++i) {
      if (!allows(query, all.ids[i])) continue;
      answer.ids.push_back(all.ids[i]);
      answer.distances.push_back(all.distances[i]);
    }
    answer.offsets.push_back(answer.ids.size());
  }
  return answer;
}

}  // namespace nearwise::support

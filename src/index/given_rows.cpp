#include "index/given_rows.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>

#include "core/check.h"
#include "core/checked.h"

namespace nearwise::index {
namespace {

// next_id, one above the largest id, must be an Id too.
constexpr Id max_next_id = std::numeric_limits<Id>::max();

Id first_bad(std::span<const Id> ids) {
  const auto bad = std::ranges::find_if(ids, [](Id id) { return id < 0 || id == max_next_id; });
  return bad == ids.end() ? 0 : *bad;
}

void check_distinct(const char* operation, MemoryBudget& budget, std::span<const Id> ids) {
  // Ascending ids, the common case, need no copy.
  if (std::ranges::adjacent_find(ids, std::greater_equal<>()) == ids.end()) return;
  Buffer<Id> sorted(budget, ids.size());
  std::ranges::copy(ids, sorted.data());
  std::ranges::sort(sorted.span());
  const auto twice = std::ranges::adjacent_find(sorted.span());
  require(twice == sorted.span().end(), "{}: ids must differ, got {} twice", operation,
          twice == sorted.span().end() ? 0 : *twice);
}

}  // namespace

void check_ids(const char* operation, std::size_t rows, std::span<const Id> ids) {
  require(ids.empty() || ids.size() == rows, "{}: there must be one id per row, got {} for {} rows",
          operation, ids.size(), rows);
  require(std::ranges::all_of(ids, [](Id id) { return id >= 0 && id < max_next_id; }),
          "{}: ids must be 0 to {}, got {}", operation, max_next_id - 1, first_bad(ids));
}

GivenRows::GivenRows(const char* operation, MemoryBudget& budget, const RowsView& rows,
                     std::span<const Id> ids, Id next_id, const IdRules& rules,
                     const std::function<bool(Id)>& holds)
    : rows_(rows), ids_(ids), next_id_(next_id) {
  if (ids.empty()) {
    require(rows.rows() <= static_cast<std::uint64_t>(max_next_id - next_id),
            "{}: ids must be at most {}, got {} rows with ids from {}", operation, max_next_id - 1,
            rows.rows(), next_id);
    own_ids_ = Buffer<Id>(budget, rows.rows());
    std::iota(own_ids_.data(), own_ids_.data() + own_ids_.size(), next_id);
    ids_ = own_ids_.span();
  } else {
    check_distinct(operation, budget, ids);
    std::vector<std::size_t> fresh;
    for (std::size_t row = 0; row < ids.size(); ++row) {
      if (ids[row] >= next_id || !holds(ids[row])) {
        require(!rules.must_exist, "{}: id {} is not in the index", operation, ids[row]);
        if (rules.on_duplicate == OnDuplicate::keep) fresh.push_back(row);
        continue;
      }
      require(rules.on_duplicate != OnDuplicate::refuse,
              "{}: id {} is in the index already; remove it, or replace it (on_duplicate)", operation,
              ids[row]);
      replaced_.push_back(ids[row]);
    }
    if (rules.on_duplicate == OnDuplicate::keep && fresh.size() != rows.rows()) {
      replaced_.clear();
      const std::size_t row_bytes = rows.dim() * element_size(rows.type());
      own_rows_ = Buffer<std::byte>(budget, checked_multiply(fresh.size(), row_bytes, "bytes of rows"));
      own_ids_ = Buffer<Id>(budget, fresh.size());
      for (std::size_t i = 0; i < fresh.size(); ++i) {
        std::memcpy(own_rows_.data() + i * row_bytes, rows.row(fresh[i]), row_bytes);
        own_ids_[i] = ids[fresh[i]];
      }
      rows_ = {own_rows_.data(), rows.type(), fresh.size(), rows.dim(), row_bytes};
      ids_ = own_ids_.span();
    }
  }
  if (!ids_.empty()) next_id_ = std::max(next_id, std::ranges::max(ids_) + 1);
}

}  // namespace nearwise::index

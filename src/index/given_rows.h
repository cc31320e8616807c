// Vectors on their way into an index, with the ids that the caller gives them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "core/memory.h"
#include "nearwise/matrix.h"

namespace nearwise::index {

// Throws Error(invalid_argument) in the name of `operation` unless there is an id for each row, all of them
// in range, or none at all.
void check_ids(const char* operation, std::size_t rows, std::span<const Id> ids);

struct IdRules {
  OnDuplicate on_duplicate = OnDuplicate::refuse;
  bool must_exist = false;  // ids that the index does not hold are refused
};

// The vectors that an index takes by these rules.
class GivenRows {
 public:
  // ids: different, checked by check_ids(); empty: consecutive ones from next_id, one above the largest that
  // the index ever held. holds(id): whether it holds this one.
  GivenRows(const char* operation, MemoryBudget& budget, const RowsView& rows, std::span<const Id> ids,
            Id next_id, const IdRules& rules, const std::function<bool(Id)>& holds);
  GivenRows(const GivenRows&) = delete;
  GivenRows& operator=(const GivenRows&) = delete;

  const RowsView& rows() const { return rows_; }
  std::span<const Id> ids() const { return ids_; }
  // Ids of vectors that these take the place of.
  std::span<const Id> replaced() const { return replaced_; }
  Id next_id() const { return next_id_; }  // afterwards

 private:
  RowsView rows_;
  std::span<const Id> ids_;
  std::vector<Id> replaced_;
  Id next_id_;
  // Copies, if some of the given rows are left out, or no ids were given.
  Buffer<std::byte> own_rows_;
  Buffer<Id> own_ids_;
};

}  // namespace nearwise::index

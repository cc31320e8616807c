// Neighbour lists and local joins: what graph construction needs of a backend.
//
// Rows are addressed by their place in an order chosen by the caller, so that rows compared often are close
// in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/math/random.h"
#include "core/neighbor_entry.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise {

class ProgressMeter;

// Rows packed for joins. Opaque; made by start_join.
class JoinState {
 public:
  virtual ~JoinState() = default;
};

struct StartJoinArgs {
  RowsView rows;                         // at most max_entry_rows
  std::span<const std::uint32_t> order;  // [rows] the row at each place; outlives the state
  Metric metric = Metric::sqeuclidean;
  ElementType type = ElementType::f32;  // as in PrepareArgs
  std::span<const float> centre;        // as in PrepareArgs
  std::size_t degree = 0;               // entries of a list
  // [rows, degree] by place, each list ascending.
  std::span<NeighborEntry> lists;
  // Whether `lists` already holds neighbours, with the keys that this backend would compute. Otherwise they
  // are emptied.
  bool has_neighbors = false;
};

// Groups of places; a place occurs at most once in a group. The first new_counts[group] members are compared
// with each other and with all other members; the others are not compared with each other. bipartite: the
// first members are compared with the others only.
struct Groups {
  std::span<const std::uint32_t> members;
  std::span<const std::uint64_t> ends;        // [groups] end of each in members
  std::span<const std::uint32_t> new_counts;  // [groups] leading members with the new flag
  bool bipartite = false;

  std::size_t size() const { return ends.size(); }
  std::uint64_t begin(std::size_t group) const { return group == 0 ? 0 : ends[group - 1]; }
  std::span<const std::uint32_t> of(std::size_t group) const {
    return members.subspan(begin(group), ends[group] - begin(group));
  }
};

// Compares pairs of members and inserts each into the other's list, which keeps the best by reported
// distance, then place. Inserted entries are new. The lists do not depend on the order of the groups or of
// the work.
struct JoinGroupsArgs {
  JoinState& state;
  Groups groups;
  ProgressMeter* progress = nullptr;  // counts members of groups
};

// An NN-Descent iteration: joins a sample of the neighbours and reverse neighbours of every row.
// graph/build/sample_neighbors.h defines the sample.
struct JoinNeighborhoodsArgs {
  JoinState& state;
  std::size_t sample = 0;  // new, and old, neighbours drawn per row and direction
  Random random;
  ProgressMeter* progress = nullptr;  // counts rows
};

// Bytes on the budget.
struct JoinCosts {
  std::uint64_t bytes_per_row = 0;     // of the state
  std::uint64_t bytes_per_member = 0;  // of the largest group, during a join
  std::uint64_t fixed_bytes = 0;
};

}  // namespace nearwise

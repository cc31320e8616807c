// Local joins of NN-Descent: neighbour lists of all vectors, and groups of vectors that are compared with each other.
//
// Vectors are addressed by their place in an order chosen by the caller, which puts vectors that are often compared next
// to each other in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/neighbor_entry.h"
#include "core/random.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise {

class ProgressMeter;

// Vectors prepared for joins. Opaque; made by start_join.
class JoinState {
 public:
  virtual ~JoinState() = default;
};

struct StartJoinArgs {
  RowsView rows;                         // at most max_entry_rows
  std::span<const std::uint32_t> order;  // [rows] the row at each place; must outlive the state
  Metric metric = Metric::sqeuclidean;
  bool bytes = false;             // as in PrepareArgs
  std::span<const float> centre;  // as in PrepareArgs
  std::size_t degree = 0;         // entries of a list
  // [rows, degree] by place, each list ascending.
  std::span<NeighborEntry> lists;
  // Whether `lists` already holds neighbours, with the keys that this backend would compute. Otherwise they are emptied.
  bool has_neighbors = false;
};

// Groups of places, stored consecutively; a place occurs at most once in a group. The first new_counts[g] members of group g
// are the new ones: pairs new-new and new-old are compared, pairs old-old are not. In bipartite groups only new-old pairs.
struct Groups {
  std::span<const std::uint32_t> members;
  std::span<const std::uint64_t> ends;        // [groups] end offset of each group's members
  std::span<const std::uint32_t> new_counts;  // [groups]
  bool bipartite = false;

  std::size_t size() const { return ends.size(); }
  std::uint64_t begin(std::size_t group) const { return group == 0 ? 0 : ends[group - 1]; }
  std::span<const std::uint32_t> of(std::size_t group) const {
    return members.subspan(begin(group), ends[group] - begin(group));
  }
};

// Inserts each vector of a compared pair into the list of the other. Lists keep the best entries by reported distance,
// then by place; inserted entries get the new flag. The resulting lists do not depend on the order of groups or threads.
struct JoinGroupsArgs {
  JoinState& state;
  Groups groups;
};

// One iteration of NN-Descent: for every vector a sample of its neighbours and of its reverse neighbours forms a group.
// graph/build/neighborhoods.h defines the sample.
struct JoinNeighborhoodsArgs {
  JoinState& state;
  std::size_t sample = 0;  // new and old neighbours sampled per vector, in each direction
  Random random;
  ProgressMeter* progress = nullptr;  // counts rows
};

// Bytes on the context's budget.
struct JoinCosts {
  std::uint64_t bytes_per_row = 0;     // of the state
  std::uint64_t bytes_per_member = 0;  // of the largest group, while groups are joined
  std::uint64_t fixed_bytes = 0;
};

}  // namespace nearwise

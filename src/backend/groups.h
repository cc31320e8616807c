// Neighbour lists of all rows, and groups of rows that are made known to each other: what building a graph needs of a
// backend.
//
// Rows are numbered by their place in an order of the caller's choice, so that rows which meet often lie close together.
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

// Rows in the form that groups of them are multiplied in. Opaque; made by start_join.
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
  std::span<NeighborEntry>
      lists;                   // [rows, degree] by place, ascending; begins with every entry empty, unless
  bool has_neighbors = false;  // they hold neighbours already, with the keys that would be computed here
};

// Groups of places, one after the other; a place stands in a group once. The first `new_count` members of a group meet each
// other and all the others; those others do not meet each other. Where groups are apart, the first meet the others only.
struct Groups {
  std::span<const std::uint32_t> members;
  std::span<const std::uint64_t> ends;        // [groups] where the members of each end
  std::span<const std::uint32_t> new_counts;  // [groups]
  bool bipartite = false;

  std::size_t size() const { return ends.size(); }
  std::uint64_t begin(std::size_t group) const { return group == 0 ? 0 : ends[group - 1]; }
  std::span<const std::uint32_t> of(std::size_t group) const {
    return members.subspan(begin(group), ends[group] - begin(group));
  }
};

// Offers every two members that meet to each other's lists, which keep the best by their reported distance and then by
// place; who comes in is new. The lists afterwards do not depend on the order of the groups or of the work.
struct JoinGroupsArgs {
  JoinState& state;
  Groups groups;
};

// A round of descent: of every row some neighbours are drawn, and some rows whose neighbour it is, and offered to each
// other's lists as a group. Which are drawn is defined by graph/build/neighborhoods.h.
struct JoinNeighborhoodsArgs {
  JoinState& state;
  std::size_t sample = 0;  // new neighbours of a row that are taken, and others, in either direction
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

// Who meets in a round of descent: the neighbours of every row, and the rows whose neighbour it is.
//
// A snapshot of all lists at the beginning of the round (Dong et al., "Efficient k-nearest neighbor graph construction",
// with samples of fixed size as in GNND). New entries that are taken into a sample are old from then on. Which are taken
// is decided by random numbers of (round, pair) alone: the same at any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/ops.h"
#include "core/memory.h"
#include "core/random.h"
#include "nearwise/context.h"

namespace nearwise::graph {

class Neighborhoods {
 public:
  // sample: new neighbours of a row that are taken, and others, in either direction.
  Neighborhoods(const Context& context, std::span<NeighborEntry> lists, std::size_t degree,
                std::size_t sample, const Random& random);

  static std::uint64_t bytes(std::size_t rows, std::size_t degree, std::size_t sample);

  // The neighbourhoods of rows [first, first + batch_rows) as groups; valid until the next call.
  Groups groups(std::size_t first);

  static constexpr std::size_t batch_rows = 1 << 15;
  static std::size_t max_members(std::size_t sample) { return 4 * sample; }

 private:
  void take_forward(std::span<NeighborEntry> list, std::size_t row);
  void link_backward();
  // Writes the members of one group, the new ones first, and returns their number.
  std::uint32_t fill(std::size_t row, std::uint32_t* members, std::uint32_t& new_count);

  const Context& context_;
  const std::size_t rows_;
  const std::size_t taken_;  // places of a row in forward_
  const std::size_t sample_;
  const Random random_;
  // A number and, in its lowest bit, whether it is new.
  Buffer<std::uint32_t> forward_;  // [rows, taken]; none: no_link
  Buffer<std::uint64_t> ends_;     // [rows] of the links back
  Buffer<std::uint32_t> backward_;
  Buffer<std::uint32_t> slots_;  // [batch_rows, max_members]
  std::vector<std::uint64_t> group_ends_;
  std::vector<std::uint32_t> group_new_counts_;
};

}  // namespace nearwise::graph

// The local joins of an NN-Descent iteration: for every row a sample of its neighbours and reverse
// neighbours.
//
// Samples come from a snapshot of all lists (Dong et al., "Efficient k-nearest neighbor graph construction";
// fixed sample sizes as in GNND). New entries that are sampled become old. The choice depends on random
// numbers of (iteration, pair) alone, and so not on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/ops.h"
#include "core/math/random.h"
#include "core/memory.h"
#include "nearwise/context.h"

namespace nearwise::graph {

class Neighborhoods {
 public:
  // sample: new, and old, neighbours drawn per row and direction.
  Neighborhoods(const Context& context, std::span<NeighborEntry> lists, std::size_t degree,
                std::size_t sample, const Random& random);

  static std::uint64_t bytes(std::size_t rows, std::size_t degree, std::size_t sample);

  // The local joins of rows [first, first + batch_rows); valid until the next call.
  Groups groups(std::size_t first);

  static constexpr std::size_t batch_rows = 1 << 15;
  static std::size_t max_members(std::size_t sample) { return 4 * sample; }

 private:
  void take_forward(std::span<NeighborEntry> list, std::size_t row);
  void link_backward();
  // Writes the members of one group, new ones first, and returns their number.
  std::uint32_t fill(std::size_t row, std::uint32_t* members, std::uint32_t& new_count);

  const Context& context_;
  const std::size_t rows_;
  const std::size_t taken_;  // places of a row in forward_
  const std::size_t sample_;
  const Random random_;
  // A link is a row number shifted left by one; its lowest bit is the new flag.
  Buffer<std::uint32_t> forward_;  // [rows, taken] padded with no_link
  Buffer<std::uint64_t> ends_;     // [rows] ends in backward_
  Buffer<std::uint32_t> backward_;
  Buffer<std::uint32_t> slots_;  // [batch_rows, max_members]
  std::vector<std::uint64_t> group_ends_;
  std::vector<std::uint32_t> group_new_counts_;
};

}  // namespace nearwise::graph

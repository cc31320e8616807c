// The entries that single queries must not return, as a scan of lists takes them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/denied_ids.h"
#include "core/memory.h"
#include "ivf/list_search.h"

namespace nearwise::ivf {

class DeniedNumbers {
 public:
  // Of the queries of a tile. Without denied ids there are none.
  DeniedNumbers(const Context& context, const IvfInternals::State& state, const ListSearch::Tile& tile,
                const DeniedIds& denied);
  // On the budget of the context, for each query.
  static std::uint64_t bytes_per_query(const DeniedIds& denied);

  // How many of the neighbours of a query it must not return: estimated from the lists that are nearest.
  std::size_t near(std::size_t query) const { return near_.size() == 0 ? 0 : near_[query]; }

  DeniedEntries view() const {
    return {offsets_.span(), slots_.span(), bits_.span(), stretches_.span(), counts_.span()};
  }

 private:
  void insert(std::size_t query, std::uint32_t number) noexcept;

  // As in DeniedEntries.
  Buffer<std::size_t> offsets_;
  Buffer<std::uint32_t> slots_;
  Buffer<std::uint64_t> bits_;
  Buffer<std::uint64_t> stretches_;
  Buffer<std::uint32_t> counts_;
  Buffer<std::uint32_t> near_;
};

}  // namespace nearwise::ivf

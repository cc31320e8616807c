#include "backend/cpu/lists/list_rows.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace nearwise::cpu {

ListNumbers::ListNumbers(std::span<const ListView> lists, Lookups lookups) : firsts_(lists.size() + 1) {
  for (std::size_t list = 0; list < lists.size(); ++list)
    firsts_[list + 1] = firsts_[list] + lists[list].rows;
  if (lookups == Lookups::few) return;
  const std::size_t rows = firsts_.back();
  stretches_.reserve((rows >> stretch_bits) + 1);
  std::size_t list = 0;
  for (std::size_t row = 0; row < rows; row += std::size_t{1} << stretch_bits) {
    while (firsts_[list + 1] <= row) ++list;
    stretches_.push_back(static_cast<std::uint32_t>(list));
  }
}

std::uint64_t ListNumbers::bytes(std::size_t lists, std::size_t rows) {
  return (lists + 1) * sizeof(std::size_t) + ((rows >> stretch_bits) + 1) * sizeof(std::uint32_t);
}

ListNumbers::Place ListNumbers::find(std::uint32_t number) const {
  if (stretches_.empty()) {
    const auto list = std::ranges::upper_bound(firsts_, std::size_t{number}) - firsts_.begin() - 1;
    return {static_cast<std::size_t>(list), number - firsts_[static_cast<std::size_t>(list)]};
  }
  std::size_t list = stretches_[number >> stretch_bits];
  while (firsts_[list + 1] <= number) ++list;
  return {list, number - firsts_[list]};
}

double squares_of(std::span<const double> vector) {
  double sums[8] = {};
  for (std::size_t i = 0; i < vector.size(); ++i) sums[i % std::size(sums)] += vector[i] * vector[i];
  return std::accumulate(std::begin(sums), std::end(sums), 0.0);
}

}  // namespace nearwise::cpu

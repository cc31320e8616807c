#include "graph_index/searched_graph.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace nearwise::graph_index {

std::shared_ptr<const AllowedRows> allowed_of(std::vector<std::uint64_t> words) {
  auto allowed = std::make_shared<AllowedRows>();
  for (const std::uint64_t word : words) allowed->count += static_cast<std::size_t>(std::popcount(word));
  allowed->filter = FilterInternals::of_bits(words);
  allowed->words = std::move(words);
  return allowed;
}

std::vector<std::uint64_t> SearchedGraph::live_words(std::span<const std::uint32_t> without,
                                                     std::size_t more) const {
  if (!live && without.empty()) return {};
  const std::size_t before = rows.count();
  std::vector<std::uint64_t> words(bit_words(before + more), 0);
  const auto set = [&](std::size_t row) { words[row / 64] |= std::uint64_t{1} << (row % 64); };
  if (live) {
    std::copy_n(live->words.begin(), std::min(live->words.size(), words.size()), words.begin());
  } else {
    std::fill_n(words.begin(), before / 64, ~std::uint64_t{0});
    for (std::size_t row = before / 64 * 64; row < before; ++row) set(row);
  }
  for (const std::uint32_t row : without) words[row / 64] &= ~(std::uint64_t{1} << (row % 64));
  for (std::size_t row = before; row < before + more; ++row) set(row);
  return words;
}

void SearchedGraph::prepare(const Context& context, const std::shared_ptr<MemoryBudget>& budget) {
  filter_key = FilterInternals::new_key();
  prepared = std::make_unique<const PreparedGraphs>(context, view(), budget);
}

}  // namespace nearwise::graph_index

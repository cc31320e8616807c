#include "graph_index/edges/edge_changes.h"

#include <algorithm>

namespace nearwise::graph_index {

EdgeLists::EdgeLists(std::vector<MatrixView<const std::int32_t>> blocks)
    : blocks_(std::move(blocks)), block_rows_(std::max<std::size_t>(1, blocks_.front().rows())) {
  for (const auto& block : blocks_) rows_ += block.rows();
}

std::size_t put_edges(std::span<std::int32_t> list, std::span<const std::int32_t> added) {
  auto end = std::ranges::find(list, no_edge);
  std::size_t replaced = 0;
  for (const std::int32_t target : added) {
    if (end != list.end())
      *end++ = target;
    else
      list[list.size() - 1 - replaced++] = target;
  }
  return replaced;
}

EdgeChanges::EdgeChanges(MemoryBudget& budget, EdgeLists lists)
    : budget_(budget), lists_(std::move(lists)), first_(budget, lists_.rows()) {
  std::ranges::fill(first_.span(), none);
}

void EdgeChanges::added_to(std::uint32_t row, std::vector<std::int32_t>& added) const {
  added.clear();
  for (std::uint32_t i = first_[row]; i != none; i = added_[i].next) added.push_back(added_[i].target);
}

std::span<const std::int32_t> EdgeChanges::list(std::uint32_t row, std::vector<std::int32_t>& scratch) const {
  const std::span<const std::int32_t> before = lists_.row(row);
  if (first_[row] == none) return before;
  std::vector<std::int32_t> added;
  added_to(row, added);
  scratch.assign(before.begin(), before.end());
  put_edges(scratch, added);
  return scratch;
}

bool EdgeChanges::add(std::uint32_t from, std::uint32_t to) {
  const auto target = static_cast<std::int32_t>(to);
  std::vector<std::int32_t> added;
  added_to(from, added);
  const std::span<const std::int32_t> before = lists_.row(from);
  std::vector<std::int32_t> list(before.begin(), before.end());
  const std::size_t replaced = put_edges(list, added);
  const auto end = std::ranges::find(list, no_edge);
  if (std::find(list.begin(), end, target) != end) return true;
  if (end == list.end() && replaced >= list.size() / 4) return false;
  return append(from, target);
}

bool EdgeChanges::append(std::uint32_t row, std::int32_t target) {
  constexpr std::size_t least = 256;
  if (count_ == none) return false;
  if (count_ == added_.size()) {
    Buffer<Added> larger(budget_, std::max(least, 2 * count_));
    std::copy_n(added_.data(), count_, larger.data());
    added_ = std::move(larger);
  }
  std::uint32_t* last = &first_[row];
  while (*last != none) last = &added_[*last].next;
  *last = static_cast<std::uint32_t>(count_);
  added_[count_++] = {target, none};
  return true;
}

}  // namespace nearwise::graph_index

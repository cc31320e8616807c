#include "graph/build/sample_neighbors.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "backend/context_state.h"
#include "core/checked.h"

namespace nearwise::graph {
namespace {

constexpr std::uint32_t no_link = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t task_rows = 1024;

// Keeps a random sample of `count` links, unordered.
void draw(std::vector<std::uint32_t>& links, std::size_t count, std::size_t row, const Random& random) {
  if (links.size() <= count) return;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> ranked;
  ranked.reserve(links.size());
  for (const std::uint32_t link : links)
    ranked.emplace_back(random.bits(std::uint64_t{row} << 32 | link >> 1), link);
  std::nth_element(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count), ranked.end());
  links.resize(count);
  for (std::size_t i = 0; i < count; ++i) links[i] = ranked[i].second;
}

void for_rows(const Context& context, std::size_t rows,
              const std::function<void(std::size_t, std::size_t)>& body) {
  context.state().threads->for_each(divide_up(rows, task_rows), [&](std::size_t task) {
    context.state().cancel.check();
    body(task * task_rows, std::min(rows, (task + 1) * task_rows));
  });
}

}  // namespace

std::uint64_t Neighborhoods::bytes(std::size_t rows, std::size_t degree, std::size_t sample) {
  const std::size_t taken = std::min(degree, 2 * sample);
  return std::uint64_t{rows} * (2 * taken * sizeof(std::uint32_t) + sizeof(std::uint64_t)) +
         batch_rows * max_members(sample) * sizeof(std::uint32_t);
}

Neighborhoods::Neighborhoods(const Context& context, std::span<NeighborEntry> lists, std::size_t degree,
                             std::size_t sample, const Random& random)
    : context_(context),
      rows_(lists.size() / degree),
      taken_(std::min(degree, 2 * sample)),
      sample_(sample),
      random_(random),
      forward_(*context.state().budget, rows_ * taken_),
      ends_(*context.state().budget, rows_),
      backward_(*context.state().budget, rows_ * taken_),
      slots_(*context.state().budget, batch_rows * max_members(sample)) {
  for_rows(context, rows_, [&](std::size_t first, std::size_t end) {
    for (std::size_t row = first; row < end; ++row) take_forward(lists.subspan(row * degree, degree), row);
  });
  link_backward();
}

void Neighborhoods::take_forward(std::span<NeighborEntry> list, std::size_t row) {
  std::uint32_t* const taken = forward_.data() + row * taken_;
  std::fill_n(taken, taken_, no_link);
  std::vector<std::uint32_t> links[2];  // others, new
  for (const NeighborEntry entry : list)
    if (entry != empty_entry) links[is_new(entry)].push_back(static_cast<std::uint32_t>(entry));
  std::size_t count = 0;
  for (std::vector<std::uint32_t>& kind : links) {
    draw(kind, sample_, row, random_);
    for (const std::uint32_t link : kind) taken[count++] = link;
  }
  for (NeighborEntry& entry : list)
    if (is_new(entry) && entry != empty_entry &&
        std::ranges::find(links[1], static_cast<std::uint32_t>(entry)) != links[1].end())
      entry = as_old(entry);
}

void Neighborhoods::link_backward() {
  std::ranges::fill(ends_.span(), std::uint64_t{0});
  const auto for_links = [&](const auto& look) {
    for_rows(context_, rows_, [&](std::size_t first, std::size_t end) {
      for (std::size_t row = first; row < end; ++row)
        for (std::size_t i = 0; i < taken_; ++i)
          if (const std::uint32_t link = forward_[row * taken_ + i]; link != no_link) look(row, link);
    });
  };
  for_links([&](std::size_t, std::uint32_t link) {
    std::atomic_ref(ends_[link >> 1]).fetch_add(1, std::memory_order_relaxed);
  });
  // Prefix sums: the begin of each row's links, which the fill below moves to their end.
  std::uint64_t sum = 0;
  for (std::uint64_t& end : ends_.span()) end = (sum += end) - end;
  for_links([&](std::size_t row, std::uint32_t link) {
    const std::uint64_t place = std::atomic_ref(ends_[link >> 1]).fetch_add(1, std::memory_order_relaxed);
    backward_[place] = static_cast<std::uint32_t>(row) << 1 | (link & 1U);
  });
}

std::uint32_t Neighborhoods::fill(std::size_t row, std::uint32_t* members, std::uint32_t& new_count) {
  const std::span<const std::uint32_t> ahead = forward_.span().subspan(row * taken_, taken_);
  const std::uint64_t begin = row == 0 ? 0 : ends_[row - 1];
  const std::span<const std::uint32_t> behind = backward_.span().subspan(begin, ends_[row] - begin);
  new_count = 0;
  std::uint32_t count = 0;
  if (std::ranges::none_of(ahead, [](std::uint32_t link) { return link != no_link && (link & 1U) != 0; }) &&
      std::ranges::none_of(behind, [](std::uint32_t link) { return (link & 1U) != 0; }))
    return 0;
  std::vector<std::uint32_t> links;
  const auto add = [&](bool is_new) {
    links.clear();
    for (const std::uint32_t link : behind)
      if (((link & 1U) != 0) == is_new) links.push_back(link);
    draw(links, sample_, row, random_);
    for (const std::uint32_t link : ahead)
      if (link != no_link && ((link & 1U) != 0) == is_new) links.push_back(link);
    // Sorted, because threads filled backward_ in any order.
    std::ranges::sort(links);
    const std::uint32_t known = count;
    for (const std::uint32_t link : links) {
      const std::uint32_t number = link >> 1;
      if (count > known && members[count - 1] == number) continue;
      if (std::find(members, members + known, number) != members + known) continue;
      members[count++] = number;
    }
  };
  add(true);
  new_count = count;
  add(false);
  return count;
}

Groups Neighborhoods::groups(std::size_t first) {
  const std::size_t rows = std::min(batch_rows, rows_ - first);
  const std::size_t slot = max_members(sample_);
  group_ends_.resize(rows);
  group_new_counts_.resize(rows);
  for_rows(context_, rows, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      group_ends_[i] = fill(first + i, slots_.data() + i * slot, group_new_counts_[i]);
  });
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    std::copy_n(slots_.data() + i * slot, group_ends_[i], slots_.data() + sum);
    group_ends_[i] = sum += group_ends_[i];
  }
  return {slots_.span().first(sum), group_ends_, group_new_counts_};
}

}  // namespace nearwise::graph

#include "ivf/removal.h"

#include <algorithm>

#include "backend/context_state.h"
#include "core/progress.h"

namespace nearwise::ivf {

Removal::Removal(IvfInternals::State& state, const Context& context, std::span<const Id> ids,
                 ProgressMeter* progress)
    : state_(state) {
  if (ids.empty()) return;
  MemoryBudget& budget = *context.state().budget;
  const index::IdTable& table = state.ids();
  Buffer<Found> found(budget, ids.size());
  std::size_t count = 0;
  for (const Id id : ids)
    if (const auto list = table.find(id)) found[count++] = {id, *list};
  // By list, so that each is read once; an id that was given twice counts once.
  const auto order = [](const Found& left, const Found& right) {
    return left.list != right.list ? left.list < right.list : left.id < right.id;
  };
  std::sort(found.data(), found.data() + count, order);
  count = static_cast<std::size_t>(
      std::unique(found.data(), found.data() + count,
                  [](const Found& left, const Found& right) { return left.id == right.id; }) -
      found.data());
  found_ = Buffer<Found>(budget, count);
  std::copy_n(found.data(), count, found_.data());
  for (std::size_t begin = 0; begin < count;) {
    context.state().cancel.check();
    const std::uint32_t list = found_[begin].list;
    std::size_t end = begin;
    while (end < count && found_[end].list == list) ++end;
    const std::span<const Found> gone = found_.span().subspan(begin, end - begin);
    const ListView view = state.rows.view(list);
    Buffer<std::uint8_t>& drop = drop_.emplace(list, Buffer<std::uint8_t>(budget, view.rows)).first->second;
    std::transform(view.ids, view.ids + view.rows, drop.data(), [&](Id id) {
      return static_cast<std::uint8_t>(std::ranges::binary_search(gone, id, {}, &Found::id));
    });
    if (progress != nullptr) progress->add(end - begin);
    begin = end;
  }
}

std::uint64_t Removal::bytes(const IvfInternals::State& state, std::size_t ids) {
  if (ids == 0) return 0;
  const std::size_t lists = std::min(ids, state.rows.lists());
  return 2 * buffer_bytes(ids, sizeof(Found)) + state.rows.most_rows(lists) + lists * buffer_bytes(0, 1);
}

std::uint64_t Removal::kept_bytes(const IvfInternals::State& state, std::size_t ids) {
  return state.rows.most_owned_bytes(ids);
}

void Removal::own_lists() {
  for (const auto& [list, drop] : drop_) state_.rows.own(list);
}

void Removal::hide() noexcept {
  for (const Found& entry : found_.span()) state_.table.load()->erase(entry.id);
}

void Removal::show() noexcept {
  for (const Found& entry : found_.span()) state_.table.load()->insert(entry.id, entry.list);
}

void Removal::commit() noexcept {
  for (const auto& [list, drop] : drop_) {
    state_.list_changes(list);
    state_.rows.remove(list, drop.span());
  }
}

}  // namespace nearwise::ivf

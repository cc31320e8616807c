#include "ivf/filter/allowed_entries.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "core/checked.h"
#include "core/filter.h"
#include "core/fork.h"

namespace nearwise::ivf {
namespace {

// Finding an id takes a hash lookup and a scan of its list; testing an entry, a few ns.
constexpr std::size_t entries_per_lookup = 256;
// Of vectors that are kept packed with a filter.
constexpr std::size_t copied_task = 1024;

}  // namespace

Buffer<std::byte> copy_vectors(const Context& context, const IvfInternals::State& state,
                               const EntryVectors& vectors, std::span<const AllowedEntries::Entry> entries) {
  Buffer<std::byte> copies(*context.state().budget,
                           checked_multiply(entries.size(), vectors.bytes(), "bytes of vectors"));
  context.state().threads->for_each(divide_up(entries.size(), copied_task), [&](std::size_t task) {
    context.state().cancel.check();
    for (std::size_t i = task * copied_task; i < std::min(entries.size(), (task + 1) * copied_task); ++i)
      vectors.copy(state.rows.view(entries[i].list), entries[i].row, copies.data() + i * vectors.bytes());
  });
  return copies;
}

std::shared_ptr<const AllowedEntries> AllowedEntries::of(const Context& context,
                                                         const IvfInternals::State& state,
                                                         const Filter& filter) {
  return FilterInternals::derive<AllowedEntries>(filter, state.rows.version(), [&] {
    return std::make_shared<const AllowedEntries>(context, state, filter);
  });
}

AllowedEntries::AllowedEntries(const Context& context, const IvfInternals::State& state, const Filter& filter)
    : budget_(state.budget), offsets_(*budget_, state.rows.lists() + 1) {
  const std::span<const Id> listed = FilterInternals::listed(filter);
  if (FilterInternals::is_shared(filter) && !listed.empty() &&
      listed.size() < state.rows.rows() / entries_per_lookup)
    find_listed(state, listed);
  else
    count_by_scan(context, state, filter);
  std::vector<std::uint8_t> has_any(state.rows.lists());
  for (std::size_t list = 0; list < has_any.size(); ++list) {
    has_any[list] = count(list) != 0 ? 1 : 0;
    lists_ += has_any[list];
  }
  if (lists_ != has_any.size()) list_filter_ = Filter::mask(has_any);
}

void AllowedEntries::count_by_scan(const Context& context, const IvfInternals::State& state,
                                   const Filter& filter) {
  const Context::State& caller = context.state();
  const std::span<const ListView> views = state.rows.views();
  offsets_[0] = 0;
  caller.threads->for_each(views.size(), [&](std::size_t list) {
    caller.cancel.check();
    const std::span<const Id> ids(views[list].ids, views[list].rows);
    offsets_[list + 1] = static_cast<std::size_t>(
        std::ranges::count_if(ids, [&](Id id) { return FilterInternals::allows_shared(filter, id); }));
  });
  for (std::size_t list = 0; list < views.size(); ++list) offsets_[list + 1] += offsets_[list];
  rows_ = Buffer<std::uint32_t>(*budget_, offsets_[views.size()]);
  caller.threads->for_each(views.size(), [&](std::size_t list) {
    caller.cancel.check();
    std::uint32_t* out = rows_.data() + offsets_[list];
    for (std::uint32_t row = 0; row < views[list].rows && out != rows_.data() + offsets_[list + 1]; ++row)
      if (FilterInternals::allows_shared(filter, views[list].ids[row])) *out++ = row;
  });
}

void AllowedEntries::find_listed(const IvfInternals::State& state, std::span<const Id> ids) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
  for (const Id id : ids)
    if (const auto place = state.find(id))
      found.emplace_back(static_cast<std::uint32_t>(place->list), static_cast<std::uint32_t>(place->row));
  std::ranges::sort(found);
  std::ranges::fill(offsets_.span(), 0);
  rows_ = Buffer<std::uint32_t>(*budget_, found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ++offsets_[found[i].first + 1];
    rows_[i] = found[i].second;
  }
  for (std::size_t list = 0; list + 1 < offsets_.size(); ++list) offsets_[list + 1] += offsets_[list];
}

bool AllowedEntries::keeps_packed(const Context& context, std::uint64_t vector_bytes) {
  return context.place().kind == DeviceKind::cpu && context.memory_limit() == 0 &&
         vector_bytes <= max_packed_bytes;
}

std::shared_ptr<const AllowedEntries::Packed> AllowedEntries::packed(const Context& context,
                                                                     const IvfInternals::State& state) const {
  {
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    if (packed_) return packed_;
  }
  auto made = std::make_shared<Packed>(Packed{context.with_progress({}), {}, {}});
  const EntryVectors vectors(state);
  made->vectors = copy_vectors(context, state, vectors, by_id(state));
  made->exact =
      Exact::prepare(context, {made->vectors.data(), vectors.type(), count(), vectors.dim(), vectors.bytes()},
                     {.metric = state.metric});
  const NoFork whole;
  const std::lock_guard lock(mutex_);
  if (!packed_) packed_ = std::move(made);
  return packed_;
}

std::span<const AllowedEntries::Entry> AllowedEntries::by_id(const IvfInternals::State& state) const {
  {
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    if (by_id_.size() == count()) return by_id_.span();
  }
  Buffer<Entry> entries(*budget_, count());
  std::size_t place = 0;
  for (std::size_t list = 0; list < state.rows.lists(); ++list)
    for (const std::uint32_t row : rows(list))
      entries[place++] = {state.rows.view(list).ids[row], static_cast<std::uint32_t>(list), row};
  std::ranges::sort(entries.span(), {}, &Entry::id);
  const NoFork whole;
  const std::lock_guard lock(mutex_);
  // Another thread may have made them meanwhile, and may be reading them.
  if (by_id_.size() != count()) by_id_ = std::move(entries);
  return by_id_.span();
}

}  // namespace nearwise::ivf

// Inverted files: vectors by their ids.
#include <algorithm>
#include <vector>

#include "backend/context_state.h"
#include "core/cancellable.h"
#include "core/check.h"
#include "core/convert.h"
#include "core/lost_pages.h"
#include "ivf/filter/ivf_filter.h"
#include "ivf/ivf_state.h"
#include "ops/check_rows.h"
#include "ops/rerank.h"

namespace nearwise {
namespace {

using Reading = index::IndexLock::Reading;

// Writes the vector of an entry, as the index keeps it or decoded.
class EntryReader {
 public:
  explicit EntryReader(const IvfInternals::State& state)
      : state_(state),
        codec_(state.view()),
        kept_(state.rerank_vectors().kept),
        scratch_(codec_.dim * sizeof(float)) {}

  template <typename T>
  void read(const IvfInternals::State::Place& place, T* out) {
    const ListView& list = state_.rows.view(place.list);
    const std::byte* row = scratch_.data();
    if (kept_.any())
      row = kept_.read(list.vectors + place.row * kept_.bytes, scratch_.data());
    else
      decode_rows(codec_, list, place.list, place.row, 1, scratch_.data());
    visit_element_type(kept_.any() ? kept_.type : codec_.type, [&](auto tag) {
      for (std::size_t i = 0; i < codec_.dim; ++i) out[i] = element<decltype(tag)>(row, i);
    });
  }

 private:
  const IvfInternals::State& state_;
  const ListCodec codec_;
  const KeptVectors kept_;
  std::vector<std::byte> scratch_;
};

}  // namespace

const index::IdTable& Ivf::State::ids() const {
  if (const index::IdTable* const made = table.load()) return *made;
  auto fresh = std::make_unique<index::IdTable>(budget);
  fresh->reserve(rows.rows(), next_id);
  CancellableSteps steps;
  for (std::size_t list = 0; list < rows.lists(); ++list) {
    const ListView& view = rows.view(list);
    for (const Id id : std::span(view.ids, view.rows)) {
      steps.add(1);
      fresh->insert(id, static_cast<std::uint32_t>(list));
    }
  }
  return table.publish(std::move(fresh));
}

const index::IdTable* Ivf::State::entry_numbers(std::size_t lookups) const {
  if (const index::IdTable* const made = numbers.load()) return made;
  // A lookup without it reads a list, about as long as it takes to enter 16 ids.
  constexpr std::size_t entries_per_lookup = 16;
  if (number_lookups.fetch_add(lookups) + lookups < rows.rows() / entries_per_lookup) return nullptr;
  const std::uint64_t bytes = index::IdTable::bytes(rows.rows(), next_id);
  if (budget->limit() != 0 && budget->used() + bytes > budget->limit() / 2) return nullptr;
  auto fresh = std::make_unique<index::IdTable>(budget);
  try {
    fresh->reserve(rows.rows(), next_id);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    return nullptr;
  }
  std::uint32_t number = 0;
  for (std::size_t list = 0; list < rows.lists(); ++list) {
    const ListView& view = rows.view(list);
    for (const Id id : std::span(view.ids, view.rows)) fresh->insert(id, number++);
  }
  return &numbers.publish(std::move(fresh));
}

std::optional<Ivf::State::Place> Ivf::State::find(Id id) const {
  const std::optional<std::uint32_t> list = ids().find(id);
  if (!list) return {};
  const ListView& view = rows.view(*list);
  const Id* const found = std::find(view.ids, view.ids + view.rows, id);
  if (found == view.ids + view.rows) return {};
  return Place{*list, static_cast<std::size_t>(found - view.ids)};
}

bool Ivf::contains(Id id) const {
  const Reading reading(state_->lock);
  const LostPagesScope lost_pages;
  return state_->ids().find(id).has_value();
}

std::vector<Id> Ivf::ids() const {
  const Reading reading(state_->lock);
  const LostPagesScope lost_pages;
  std::vector<Id> all;
  all.reserve(size());
  for (std::size_t list = 0; list < lists(); ++list) {
    const ListView& view = state_->rows.view(list);
    all.insert(all.end(), view.ids, view.ids + view.rows);
  }
  std::ranges::sort(all);
  return all;
}

void Ivf::get(std::span<const Id> ids, MatrixView<float> out) const {
  require(out.rows() == ids.size() && out.cols() == dim(), "Ivf.get: out must be {} x {}, got {} x {}",
          ids.size(), dim(), out.rows(), out.cols());
  const Reading reading(state_->lock);
  const LostPagesScope lost_pages;
  EntryReader reader(*state_);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::optional<State::Place> place = state_->find(ids[i]);
    require(place.has_value(), "Ivf.get: id {} is not in the index", ids[i]);
    reader.read(*place, out.row(i).data());
  }
}

Neighbors Ivf::rerank(const Context& context, RowsView queries, MatrixView<const Id> candidates,
                      std::size_t k) const {
  require(k >= 1, "Ivf.rerank: k must be at least 1, got 0");
  check_rows("Ivf.rerank", context, queries, state_->centroids, {"queries", "index"});
  require(queries.place().kind == DeviceKind::cpu,
          "Ivf.rerank: queries must be on the host, got queries on {}", name(queries.place()));
  require(candidates.rows() == queries.rows(),
          "Ivf.rerank: there must be candidates for each query, got {} for {}", candidates.rows(),
          queries.rows());
  const Reading reading(state_->lock, &context.state().cancel);
  return ivf::rerank_entries(context, *state_, queries, candidates, k);
}

Neighbors ivf::rerank_entries(const Context& context, const IvfInternals::State& state,
                              const RowsView& queries, const MatrixView<const Id>& candidates,
                              std::size_t k) {
  const LostPagesScope lost_pages;
  static_cast<void>(state.ids());  // made here, not by every thread
  Neighbors found{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
  nearwise::rerank(
      context, queries, state.metric, candidates,
      [&] {
        return [&state, reader = EntryReader(state)](Id id, double* out) mutable {
          const std::optional<IvfInternals::State::Place> place = state.find(id);
          if (place) reader.read(*place, out);
          return place.has_value();
        };
      },
      found);
  return found;
}

}  // namespace nearwise

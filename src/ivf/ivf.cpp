// Inverted files: removing, merging and copying vectors.
#include "nearwise/ivf.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "backend/context_state.h"
#include "codes/code_norms.h"
#include "core/checked.h"
#include "core/fork.h"
#include "core/lost_pages.h"
#include "core/progress.h"
#include "ivf/ivf_state.h"
#include "ivf/removal.h"
#include "ops/knn_plan.h"

namespace nearwise {
namespace {

using index::IdTable;
using Reading = index::IndexLock::Reading;
using Changing = index::IndexLock::Changing;
using Writing = index::IndexLock::Writing;

bool equal(MatrixView<const float> left, MatrixView<const float> right) {
  return left.rows() == right.rows() && left.cols() == right.cols() &&
         std::equal(left.data(), left.data() + left.rows() * left.cols(), right.data());
}

void check_other_ids(const IvfInternals::State& state, const IvfInternals::State& more) {
  if (state.rows.rows() == 0 || more.rows.rows() == 0) return;
  const index::IdTable& table = state.ids();
  for (std::size_t list = 0; list < more.rows.lists(); ++list) {
    const ListView& view = more.rows.view(list);
    for (const Id id : std::span(view.ids, view.rows))
      require(!table.find(id), "Ivf.merge: the ids must differ, got {} in both indexes", id);
  }
}

// Of an index that takes the vectors of another. In the order of their addresses: two indexes may be merged
// into each other at the same time.
class MergeLocks {
 public:
  MergeLocks(Changing& changing, const IvfInternals::State& to, const IvfInternals::State& from,
             const CancelFlag* cancel) {
    const bool is_first = std::less<>()(&to, &from);
    if (is_first) writing_.emplace(changing, cancel);
    reading_.emplace(from.lock, cancel);
    if (!is_first) writing_.emplace(changing, cancel);
  }

 private:
  std::optional<Reading> reading_;
  std::optional<Writing> writing_;
};

}  // namespace

Ivf::Ivf(std::unique_ptr<State> state) : state_(std::move(state)) {
  if (!state_->is_flat()) state_->tables.emplace(*state_->budget, state_->view(), state_->centre);
  if (CodeNorms::are_needed(state_->view(), state_->metric))
    state_->norms = std::make_unique<ivf::CachedNorms>(state_->budget, state_->rows.lists());
  state_->publish();
}
Ivf::Ivf(Ivf&&) noexcept = default;
Ivf& Ivf::operator=(Ivf&&) noexcept = default;
Ivf::~Ivf() = default;

std::size_t Ivf::size() const { return state_->published_size; }
Id Ivf::next_id() const { return state_->published_next_id; }
bool Ivf::is_changing() const { return state_->lock.is_changing(); }
std::size_t Ivf::dim() const { return state_->centroids.cols(); }
std::size_t Ivf::lists() const { return state_->rows.lists(); }
std::size_t Ivf::list_size(std::size_t list) const {
  require(list < lists(), "Ivf.list_size: list must be 0 to {}, got {}", lists() - 1, list);
  const Reading reading(state_->lock);
  return state_->rows.view(list).rows;
}
std::size_t Ivf::code_bytes() const { return state_->rows.code_bytes(); }
std::size_t Ivf::vector_bytes() const { return state_->rows.vector_bytes(); }
VectorStorage Ivf::vectors() const {
  return state_->is_flat() ? VectorStorage::keep : state_->vectors.storage;
}
std::filesystem::path Ivf::vector_file() const { return state_->vectors.file.path; }
bool Ivf::keeps_vectors() const {
  return vectors() == VectorStorage::keep || vectors() == VectorStorage::file ||
         (vectors() == VectorStorage::u8 && state_->vectors.offsets.empty());
}
Metric Ivf::metric() const { return state_->metric; }
MatrixView<const float> Ivf::centroids() const { return state_->centroids; }
const ProductQuantizer* Ivf::quantizer() const { return state_->codec->product_quantizer(); }
std::span<const float> Ivf::additive_codewords() const {
  const ListCodec view = state_->codec->view();
  return view.encoding == ListEncoding::lsq ? view.codewords : std::span<const float>();
}
std::string_view Ivf::encoding() const { return state_->codec->name(); }
std::size_t Ivf::probes(std::size_t k) const {
  const Reading reading(state_->lock);
  return state_->probes_for(k);
}
std::size_t Ivf::candidates(std::size_t k) const {
  const Reading reading(state_->lock);
  return state_->candidates_for(k);
}
std::map<std::string, std::string> Ivf::provenance() const {
  const Reading reading(state_->lock);
  return state_->provenance;
}
void Ivf::set_provenance(std::map<std::string, std::string> provenance) {
  Changing changing(state_->lock);
  const Writing writing(changing);
  const NoFork whole;
  state_->provenance = std::move(provenance);
}
std::optional<Calibration> Ivf::calibration() const {
  const Reading reading(state_->lock);
  return state_->calibration;
}
void Ivf::set_probes(std::size_t probes) {
  require(probes >= 1 && probes <= lists(), "Ivf.set_probes: probes must be 1 to {}, got {}", lists(),
          probes);
  Changing changing(state_->lock);
  const Writing writing(changing);
  const NoFork whole;
  state_->probes = probes;
  state_->calibration.reset();
}

std::size_t Ivf::remove(const Context& context, std::span<const Id> ids) {
  const Context::State& caller = context.state();
  caller.cancel.check();
  Changing changing(state_->lock, &caller.cancel);
  const LostPagesScope lost_pages;
  ProgressMeter progress(caller.options.progress, caller.clock, "remove", ids.size());
  ivf::Removal removal(*state_, context, ids, &progress);
  {
    const Writing writing(changing, &caller.cancel);
    removal.own_lists();
    const NoFork whole;
    removal.hide();
    removal.commit();
    state_->publish();
  }
  progress.finish();
  return removal.count();
}

void Ivf::compact() {
  Changing changing(state_->lock);
  const Writing writing(changing);
  const LostPagesScope lost_pages;
  for (std::size_t list = 0; list < lists(); ++list) state_->rows.compact(list);
}

void Ivf::to(const Context& context) {
  const Context::State& caller = context.state();
  caller.cancel.check();
  const Reading reading(state_->lock, &caller.cancel);
  if (caller.place.kind == DeviceKind::cpu)
    state_->resident.drop();
  else
    state_->resident.keep(context, state_->resident_source());
}

std::uint64_t Ivf::device_bytes(Place place) const { return state_->resident.bytes(place); }

bool Ivf::has_same_quantizers(const Ivf& other) const {
  return state_->metric == other.state_->metric && equal(state_->centroids, other.state_->centroids) &&
         state_->codec->equals(*other.state_->codec) && state_->vectors == other.state_->vectors;
}

void Ivf::merge(const Context& context, const Ivf& other) {
  State& state = *state_;
  const State& more = *other.state_;
  require(&state != &more, "Ivf.merge: the other index must not be the index itself");
  require(has_same_quantizers(other),
          "Ivf.merge: both indexes must have the same quantizers, from one training");
  const Context::State& caller = context.state();
  Changing changing(state.lock, &caller.cancel);
  const MergeLocks locks(changing, state, more, &caller.cancel);
  require(other.size() <= max_shard_rows - size(),
          "Ivf.merge: an index holds at most {} vectors, got {} and {}", max_shard_rows, size(),
          other.size());
  ProgressMeter progress(caller.options.progress, caller.clock, "merge", other.size());
  const LostPagesScope lost_pages;
  const std::span<const ListView> added = more.rows.views();
  check_other_ids(state, more);
  index::IdTable* const table = state.table.load();
  if (table != nullptr) table->reserve(more.rows.rows(), std::max(state.next_id, more.next_id));
  for (std::size_t list = 0; list < lists(); ++list) {
    caller.cancel.check();
    state.rows.reserve(list, added[list].rows);
    progress.add(added[list].rows);
  }
  // From here on only a truncated file of the other index is a failure: then its vectors are taken back.
  bool is_lost = false;
  {
    const NoFork whole;
    for (std::size_t list = 0; list < lists(); ++list) {
      state.list_changes(list);
      state.rows.append(list, added[list]);
    }
    is_lost = pages_were_lost();
    if (is_lost) {
      for (std::size_t list = 0; list < lists(); ++list) state.rows.shrink(list, added[list].rows);
    } else {
      for (std::size_t list = 0; list < lists() && table != nullptr; ++list)
        for (const Id id : std::span(added[list].ids, added[list].rows))
          table->insert(id, static_cast<std::uint32_t>(list));
      state.next_id = std::max(state.next_id, more.next_id);
      state.next_file_row = std::max(state.next_file_row, more.next_file_row);
      state.publish();
    }
  }
  if (is_lost) check_lost_pages();
  progress.finish();
}

Ivf Ivf::empty_copy() const {
  const Reading reading(state_->lock);
  return empty_copy(state_->budget);
}

Ivf Ivf::part(const Context& context, std::size_t first, std::size_t count) const {
  const Context::State& caller = context.state();
  const Reading reading(state_->lock, &caller.cancel);
  require(first <= size() && count <= size() - first,
          "Ivf.part: the range must be within 0 to {}, got {} vectors from {}", size(), count, first);
  ProgressMeter progress(caller.options.progress, caller.clock, "part", count);
  const LostPagesScope lost_pages;
  Ivf copy = empty_copy(caller.budget);
  std::size_t begin = 0;
  for (std::size_t list = 0; list < lists(); ++list) {
    caller.cancel.check();
    const ListView view = state_->rows.view(list);
    const std::size_t from = std::clamp(first, begin, begin + view.rows) - begin;
    const std::size_t to = std::clamp(first + count, begin, begin + view.rows) - begin;
    copy.state_->rows.reserve(list, to - from);
    const std::byte* const vectors =
        vector_bytes() == 0 ? nullptr : view.vectors + from * state_->rows.vector_bytes();
    copy.state_->rows.append(list, {view.codes + from * code_bytes(), view.ids + from, to - from, vectors});
    progress.add(to - from);
    begin += view.rows;
  }
  copy.state_->next_id = next_id();
  copy.state_->next_file_row = state_->next_file_row;
  copy.state_->publish();
  check_lost_pages();
  progress.finish();
  return copy;
}

Ivf Ivf::empty_copy(const std::shared_ptr<MemoryBudget>& budget) const {
  const State& state = *state_;
  Matrix<float> centroids(lists(), dim());
  std::copy_n(state.centroids.data(), lists() * dim(), centroids.data());
  return Ivf(std::unique_ptr<State>(
      new State{.metric = state.metric,
                .centroids = std::move(centroids),
                .codec = state.codec,
                .centre = state.centre,
                .budget = budget,
                .vectors = state.vectors,
                .probes = state.probes,
                .candidates = state.candidates,
                .calibration = state.calibration,
                .provenance = state.provenance,
                .rows = ivf::InvertedLists(budget, lists(), code_bytes(), state.rows.vector_bytes())}));
}

}  // namespace nearwise

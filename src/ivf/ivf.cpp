// Inverted files: removing, merging and copying vectors.
#include "nearwise/ivf.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "backend/context_state.h"
#include "codes/code_norms.h"
#include "core/cancellable.h"
#include "core/checked.h"
#include "core/fork.h"
#include "core/lost_pages.h"
#include "core/progress.h"
#include "ivf/ivf_state.h"
#include "ivf/memory_needs.h"
#include "ivf/removal.h"
#include "ops/knn_plan.h"
#include "ops/memory_limit.h"

namespace nearwise {
namespace {

using index::IdTable;
using Reading = index::IndexLock::Reading;
using Changing = index::IndexLock::Changing;
using Writing = index::IndexLock::Writing;

constexpr std::size_t ids_per_check = 4096;  // of cancellation

bool equal(MatrixView<const float> left, MatrixView<const float> right) {
  return left.rows() == right.rows() && left.cols() == right.cols() &&
         std::equal(left.data(), left.data() + left.rows() * left.cols(), right.data());
}

void check_other_ids(const IvfInternals::State& state, const IvfInternals::State& more,
                     const CancelFlag& cancel) {
  if (state.rows.rows() == 0 || more.rows.rows() == 0) return;
  const index::IdTable& table = state.ids();
  for (std::size_t list = 0; list < more.rows.lists(); ++list) {
    const ListView& view = more.rows.view(list);
    for (std::size_t row = 0; row < view.rows; ++row) {
      if (row % ids_per_check == 0) cancel.check();
      require(!table.find(view.ids[row]), "Ivf.merge: the ids must differ, got {} in both indexes",
              view.ids[row]);
    }
  }
}

// The vectors of another index, at the end of lists that have space for them.
class AppendedRows {
 public:
  AppendedRows(IvfInternals::State& state, std::span<const ListView> added) : state_(state), added_(added) {}

  // Returns false, with a part of them appended, once the flag is set.
  bool append(const CancelFlag& cancel) noexcept {
    constexpr std::size_t piece_bytes = std::size_t{4} << 20;  // about 1 ms
    ivf::InvertedLists& to = state_.rows;
    const std::size_t piece =
        std::max<std::size_t>(1, piece_bytes / (to.code_bytes() + to.vector_bytes() + sizeof(Id)));
    for (; list_ < added_.size(); ++list_, rows_ = 0) {
      const ListView& from = added_[list_];
      state_.list_changes(list_);
      while (rows_ < from.rows) {
        if (cancel.is_set()) return false;
        const std::size_t rows = std::min(piece, from.rows - rows_);
        to.append(list_, {from.codes + rows_ * to.code_bytes(), from.ids + rows_, rows,
                          from.vectors == nullptr ? nullptr : from.vectors + rows_ * to.vector_bytes()});
        rows_ += rows;
      }
    }
    return true;
  }

  void take_back() noexcept {
    for (std::size_t list = 0; list < list_; ++list) state_.rows.shrink(list, added_[list].rows);
    if (list_ < added_.size()) state_.rows.shrink(list_, rows_);
  }

 private:
  IvfInternals::State& state_;
  const std::span<const ListView> added_;
  std::size_t list_ = 0;  // the lists before are complete
  std::size_t rows_ = 0;  // appended to that list
};

// Returns false, with a part of the ids inserted, once the flag is set. The table has space for them.
bool insert_ids(index::IdTable& table, std::span<const ListView> added, const CancelFlag& cancel) noexcept {
  for (std::size_t list = 0; list < added.size(); ++list)
    for (std::size_t row = 0; row < added[list].rows; ++row) {
      if (row % ids_per_check == 0 && cancel.is_set()) return false;
      table.insert(added[list].ids[row], static_cast<std::uint32_t>(list));
    }
  return true;
}

void check_removing(const Context& context, const IvfInternals::State& state, std::size_t ids) {
  if (ids == 0 || !is_limited(context, *state.budget)) return;
  const std::uint64_t kept = ivf::table_bytes(state, 0, state.next_id) + ivf::Removal::kept_bytes(state, ids);
  check_memory("Ivf.remove", context, *state.budget, kept, kept + ivf::Removal::bytes(state, ids));
}

void check_merging(const Context& context, const IvfInternals::State& state,
                   const IvfInternals::State& more) {
  if (!is_limited(context, *state.budget)) return;
  std::vector<std::size_t> counts;
  for (const ListView& list : more.rows.views()) counts.push_back(list.rows);
  std::uint64_t kept = state.rows.reserved_bytes(counts);
  const bool has_table = state.table.load() != nullptr || (state.rows.rows() != 0 && more.rows.rows() != 0);
  if (has_table) kept += ivf::table_bytes(state, more.rows.rows(), std::max(state.next_id, more.next_id));
  check_memory("Ivf.merge", context, *state.budget, kept, kept);
}

// Of an index with the quantizers of another and `count` of its vectors.
std::uint64_t part_bytes(const IvfInternals::State& state, std::size_t count) {
  const ListCodec codec = state.view();
  const std::size_t parts = codec.encoding == ListEncoding::lsq ? codec.parts() : 0;
  const std::uint64_t tables = state.is_flat() ? 0 : CodewordTables::bytes(codec.dim, parts);
  const std::uint64_t entry_bytes = state.rows.code_bytes() + sizeof(Id) + state.rows.vector_bytes();
  return tables + count * entry_bytes + state.rows.lists() * 3 * buffer_bytes(0, 1);
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
  check_removing(context, *state_, ids.size());
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
  for (std::size_t list = 0; list < lists(); ++list) {
    check_cancelled();  // some lists keep their unused space
    state_->rows.compact(list);
  }
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
  check_merging(context, state, more);
  check_other_ids(state, more, caller.cancel);
  index::IdTable* const table = state.table.load();
  if (table != nullptr) table->reserve(more.rows.rows(), std::max(state.next_id, more.next_id));
  for (std::size_t list = 0; list < lists(); ++list) {
    caller.cancel.check();
    state.rows.reserve(list, added[list].rows);
    progress.add(added[list].rows);
  }
  // From here on only a truncated file of the other index and cancellation are failures: then its vectors are
  // taken back.
  bool is_lost = false;
  bool is_cancelled = false;
  {
    const NoFork whole;
    AppendedRows appended(state, added);
    is_cancelled = !appended.append(caller.cancel);
    is_lost = pages_were_lost();
    if (!is_cancelled && !is_lost && table != nullptr && !insert_ids(*table, added, caller.cancel)) {
      is_cancelled = true;
      state.table.reset();  // made again when it is needed: taking ids back would take as long
    }
    if (is_cancelled || is_lost) {
      appended.take_back();
    } else {
      state.next_id = std::max(state.next_id, more.next_id);
      state.next_file_row = std::max(state.next_file_row, more.next_file_row);
      state.publish();
    }
  }
  if (is_lost) check_lost_pages();
  if (is_cancelled) caller.cancel.check();
  progress.finish();
}

Ivf Ivf::empty_copy() const {
  const Reading reading(state_->lock);
  return IvfInternals::empty_copy(*state_, state_->budget);
}

Ivf Ivf::part(const Context& context, std::size_t first, std::size_t count) const {
  const Context::State& caller = context.state();
  const Reading reading(state_->lock, &caller.cancel);
  require(first <= size() && count <= size() - first,
          "Ivf.part: the range must be within 0 to {}, got {} vectors from {}", size(), count, first);
  const LostPagesScope lost_pages;
  check_memory("Ivf.part", context, part_bytes(*state_, count));
  ProgressMeter progress(caller.options.progress, caller.clock, "part", count);
  Ivf copy = IvfInternals::empty_copy(*state_, caller.budget);
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

Ivf IvfInternals::empty_copy(const State& state, const std::shared_ptr<MemoryBudget>& budget) {
  const std::size_t lists = state.rows.lists();
  Matrix<float> centroids(lists, state.centroids.cols());
  std::copy_n(state.centroids.data(), lists * centroids.cols(), centroids.data());
  return Ivf(std::unique_ptr<State>(new State{
      .metric = state.metric,
      .centroids = std::move(centroids),
      .codec = state.codec,
      .centre = state.centre,
      .budget = budget,
      .vectors = state.vectors,
      .probes = state.probes,
      .candidates = state.candidates,
      .calibration = state.calibration,
      .provenance = state.provenance,
      .rows = ivf::InvertedLists(budget, lists, state.rows.code_bytes(), state.rows.vector_bytes())}));
}

}  // namespace nearwise

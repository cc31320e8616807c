// Inverted files: adding, removing, merging and copying vectors.
#include "nearwise/ivf.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "backend/context_state.h"
#include "backend/stages.h"
#include "cluster/centroid_search.h"
#include "codes/code_norms.h"
#include "core/checked.h"
#include "core/float_environment.h"
#include "core/fork.h"
#include "core/lost_pages.h"
#include "core/progress.h"
#include "index/ivf_state.h"
#include "index/memory_needs.h"
#include "nearwise/kmeans.h"
#include "ops/check_rows.h"
#include "ops/finite_rows.h"
#include "ops/knn_plan.h"
#include "ops/memory_limit.h"
#include "quantize/residuals.h"

namespace nearwise {
namespace {

constexpr const char* add_name = "Ivf.add";
// next_id, one above the largest id, must be an Id too.
constexpr Id max_next_id = std::numeric_limits<Id>::max();

Id first_bad(std::span<const Id> ids) {
  const auto bad = std::ranges::find_if(ids, [](Id id) { return id < 0 || id == max_next_id; });
  return bad == ids.end() ? 0 : *bad;
}

bool equal(MatrixView<const float> left, MatrixView<const float> right) {
  return left.rows() == right.rows() && left.cols() == right.cols() &&
         std::equal(left.data(), left.data() + left.rows() * left.cols(), right.data());
}

}  // namespace

Ivf::Ivf(std::unique_ptr<State> state) : state_(std::move(state)) {
  if (!state_->is_flat()) state_->tables.emplace(*state_->budget, state_->view(), state_->centre);
  if (CodeNorms::are_needed(state_->view(), state_->metric))
    state_->norms = std::make_unique<index::CachedNorms>(state_->budget, state_->rows.lists());
}
Ivf::Ivf(Ivf&&) noexcept = default;
Ivf& Ivf::operator=(Ivf&&) noexcept = default;
Ivf::~Ivf() = default;

std::size_t Ivf::size() const { return state_->rows.rows(); }
std::size_t Ivf::dim() const { return state_->centroids.cols(); }
std::size_t Ivf::lists() const { return state_->rows.lists(); }
std::size_t Ivf::list_size(std::size_t list) const {
  require(list < lists(), "Ivf.list_size: list must be 0 to {}, got {}", lists() - 1, list);
  return state_->rows.view(list).rows;
}
std::size_t Ivf::code_bytes() const { return state_->rows.code_bytes(); }
Metric Ivf::metric() const { return state_->metric; }
MatrixView<const float> Ivf::centroids() const { return state_->centroids; }
const ProductQuantizer* Ivf::quantizer() const { return state_->codec->product_quantizer(); }
std::span<const float> Ivf::additive_codewords() const {
  const ListCodec view = state_->codec->view();
  return view.encoding == ListEncoding::lsq ? view.codewords : std::span<const float>();
}
std::string_view Ivf::encoding() const { return state_->codec->name(); }
std::size_t Ivf::probes() const { return state_->probes; }
std::size_t Ivf::candidates(std::size_t k) const { return state_->candidates_for(k); }
Id Ivf::next_id() const { return state_->next_id; }
const std::map<std::string, std::string>& Ivf::provenance() const { return state_->provenance; }
void Ivf::set_provenance(std::map<std::string, std::string> provenance) {
  const NoFork whole;
  state_->provenance = std::move(provenance);
}
const std::optional<Calibration>& Ivf::calibration() const { return state_->calibration; }
void Ivf::set_probes(std::size_t probes) {
  require(probes >= 1 && probes <= lists(), "Ivf.set_probes: probes must be 1 to {}, got {}", lists(),
          probes);
  const NoFork whole;
  state_->probes = probes;
  state_->calibration.reset();
}

void Ivf::add(const Context& context, RowsView rows, std::span<const Id> ids) {
  State& state = *state_;
  const bool flat = state.is_flat();
  check_rows(add_name, context, rows, state.centroids, {"vectors", "index"});
  require(rows.place().kind == DeviceKind::cpu, "{}: rows must be on the host, got rows on {}", add_name,
          name(rows.place()));
  require(!flat || rows.type() == state.codec->view().type,
          "{}: rows must have the element type of the training, {}, got {}", add_name,
          name(state.codec->view().type), name(rows.type()));
  require(ids.empty() || ids.size() == rows.rows(), "{}: there must be one id per row, got {} for {} rows",
          add_name, ids.size(), rows.rows());
  require(std::ranges::all_of(ids, [](Id id) { return id >= 0 && id < max_next_id; }),
          "{}: ids must be 0 to {}, got {}", add_name, max_next_id - 1, first_bad(ids));
  require(!ids.empty() || rows.rows() <= static_cast<std::uint64_t>(max_next_id - state.next_id),
          "{}: ids must be at most {}, got {} rows with ids from {}", add_name, max_next_id - 1, rows.rows(),
          state.next_id);
  require(rows.rows() <= max_shard_rows - size(),
          "{}: an index holds at most {} vectors, got {} more than {}", add_name, max_shard_rows, rows.rows(),
          size());
  if (rows.rows() == 0) return;
  check_memory(add_name, context,
               index::adding_bytes(
                   context, rows,
                   {.lists = lists(), .dim = dim(), .code_bytes = state.rows.code_bytes(), .is_flat = flat}));
  const DefaultFloatEnvironment environment;
  if (flat)
    check_finite(add_name, context, rows);
  else
    check_coded_range(add_name, context, rows, max_indexed_value);
  // Everything that can fail comes before the first vector is appended.
  MemoryBudget& budget = *context.state().budget;
  const std::size_t code_bytes = state.rows.code_bytes();
  Buffer<std::uint32_t> nearest(budget, rows.rows());
  Buffer<std::uint8_t> codes(budget, flat ? 0 : rows.rows() * code_bytes);
  Stages stages(context, "add");
  for (std::size_t first = 0; first < rows.rows(); first += index::added_batch_rows) {
    const RowsView batch = rows.slice(first, std::min(index::added_batch_rows, rows.rows() - first));
    Stages steps(stages.next(static_cast<double>(batch.rows()),
                             static_cast<double>(rows.rows() - first - batch.rows())),
                 "add");
    const double encoding = flat ? 0 : state.codec->encode_cost(batch.rows());
    const Neighbors found = assign(steps.next(cluster::assignment_cost(batch, lists()), encoding), batch,
                                   state.centroids, {.metric = state.metric});
    for (std::size_t i = 0; i < batch.rows(); ++i)
      nearest[first + i] = static_cast<std::uint32_t>(found.ids.data()[i]);
    if (!flat) {
      const Reservation residual_bytes(budget, batch.rows() * (dim() * sizeof(float) + code_bytes));
      Matrix<float> residuals(batch.rows(), dim());
      quantize::subtract_centroids(context, batch, state.centroids, {found.ids.data(), batch.rows()},
                                   state.metric, residuals.view());
      state.codec->encode(steps.next(encoding, 0), residuals,
                          {codes.data() + first * code_bytes, batch.rows(), code_bytes});
    }
  }
  std::vector<std::size_t> more(lists());
  for (const std::uint32_t list : nearest.span()) ++more[list];
  state.rows.reserve(more);
  bool is_lost = false;
  {
    const NoFork whole;
    for (std::size_t list = 0; list < lists(); ++list)
      if (more[list] != 0) state.list_changes(list);
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      const std::byte* const code =
          flat ? rows.row(row) : reinterpret_cast<const std::byte*>(codes.data()) + row * code_bytes;
      const Id id = ids.empty() ? state.next_id + static_cast<Id>(row) : ids[row];
      state.rows.append(nearest[row], {code, &id, 1});
    }
    // Flat encodings have just read the vectors once more.
    is_lost = pages_were_lost();
    if (is_lost)
      for (std::size_t list = 0; list < lists(); ++list) state.rows.shrink(list, more[list]);
    else
      state.next_id = ids.empty() ? state.next_id + static_cast<Id>(rows.rows())
                                  : std::max(state.next_id, std::ranges::max(ids) + 1);
  }
  if (is_lost) check_lost_pages();
  stages.finish();
}

std::size_t Ivf::remove(const Context& context, std::span<const Id> ids) {
  State& state = *state_;
  const Context::State& caller = context.state();
  caller.cancel.check();
  const LostPagesScope lost_pages;
  const Reservation bytes(*caller.budget, ids.size() * 4 * sizeof(Id));
  const std::unordered_set<Id> gone(ids.begin(), ids.end());
  ProgressMeter progress(caller.options.progress, caller.clock, "remove", size());
  std::vector<Buffer<std::uint8_t>> drop(lists());
  caller.threads->for_each(lists(), [&](std::size_t list) {
    caller.cancel.check();
    const ListView view = state.rows.view(list);
    const auto is_gone = [&](Id id) { return gone.contains(id); };
    if (std::any_of(view.ids, view.ids + view.rows, is_gone)) {
      drop[list] = Buffer<std::uint8_t>(*caller.budget, view.rows);
      std::transform(view.ids, view.ids + view.rows, drop[list].data(), is_gone);
    }
    progress.add(view.rows);
  });
  for (std::size_t list = 0; list < lists(); ++list) {
    if (drop[list].size() == 0) continue;
    caller.cancel.check();
    state.rows.own(list);
  }
  // Nothing fails from here on.
  std::size_t removed = 0;
  {
    const NoFork whole;
    for (std::size_t list = 0; list < lists(); ++list)
      if (drop[list].size() != 0) {
        state.list_changes(list);
        removed += state.rows.remove(list, drop[list].span());
      }
  }
  progress.finish();
  return removed;
}

bool Ivf::has_same_quantizers(const Ivf& other) const {
  return state_->metric == other.state_->metric && equal(state_->centroids, other.state_->centroids) &&
         state_->codec->equals(*other.state_->codec);
}

void Ivf::merge(const Context& context, const Ivf& other) {
  State& state = *state_;
  const State& more = *other.state_;
  require(&state != &more, "Ivf.merge: the other index must not be the index itself");
  require(has_same_quantizers(other),
          "Ivf.merge: both indexes must have the same quantizers, from one training");
  require(other.size() <= max_shard_rows - size(),
          "Ivf.merge: an index holds at most {} vectors, got {} and {}", max_shard_rows, size(),
          other.size());
  const Context::State& caller = context.state();
  ProgressMeter progress(caller.options.progress, caller.clock, "merge", other.size());
  const LostPagesScope lost_pages;
  const std::span<const ListView> added = more.rows.views();
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
    if (is_lost)
      for (std::size_t list = 0; list < lists(); ++list) state.rows.shrink(list, added[list].rows);
    else
      state.next_id = std::max(state.next_id, more.next_id);
  }
  if (is_lost) check_lost_pages();
  progress.finish();
}

Ivf Ivf::empty_copy() const { return empty_copy(state_->budget); }

Ivf Ivf::part(const Context& context, std::size_t first, std::size_t count) const {
  require(first <= size() && count <= size() - first,
          "Ivf.part: the range must be within 0 to {}, got {} vectors from {}", size(), count, first);
  const Context::State& caller = context.state();
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
    copy.state_->rows.append(list, {view.codes + from * code_bytes(), view.ids + from, to - from});
    progress.add(to - from);
    begin += view.rows;
  }
  copy.state_->next_id = next_id();
  check_lost_pages();
  progress.finish();
  return copy;
}

Ivf Ivf::empty_copy(const std::shared_ptr<MemoryBudget>& budget) const {
  const State& state = *state_;
  Matrix<float> centroids(lists(), dim());
  std::copy_n(state.centroids.data(), lists() * dim(), centroids.data());
  return Ivf(std::unique_ptr<State>(new State{.metric = state.metric,
                                              .centroids = std::move(centroids),
                                              .codec = state.codec,
                                              .centre = state.centre,
                                              .probes = state.probes,
                                              .candidates = state.candidates,
                                              .calibration = state.calibration,
                                              .provenance = state.provenance,
                                              .budget = budget,
                                              .rows = index::InvertedLists(budget, lists(), code_bytes())}));
}

}  // namespace nearwise

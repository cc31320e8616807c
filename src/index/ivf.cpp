// Inverted files: rows in, rows out.
#include "nearwise/ivf.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_set>

#include "backend/context_state.h"
#include "codes/code_norms.h"
#include "core/checked.h"
#include "core/float_environment.h"
#include "core/progress.h"
#include "index/ivf_state.h"
#include "index/residuals.h"
#include "nearwise/kmeans.h"
#include "ops/check_rows.h"
#include "ops/finite_rows.h"
#include "ops/knn_plan.h"
#include "quantize/additive/additive_coding.h"

namespace nearwise {
namespace {

// One above every id is a number too: the next one.
constexpr Id most_next_id = std::numeric_limits<Id>::max();

bool equal(MatrixView<const float> left, MatrixView<const float> right) {
  return left.rows() == right.rows() && left.cols() == right.cols() &&
         std::equal(left.data(), left.data() + left.rows() * left.cols(), right.data());
}

}  // namespace

Ivf::Ivf(std::unique_ptr<State> state) : state_(std::move(state)) {
  if (state_->has_codes()) state_->tables.emplace(*state_->budget, state_->codec(), state_->centre);
  if (CodeNorms::are_needed(state_->codec(), state_->metric))
    state_->norms = std::make_unique<index::CachedNorms>(state_->budget, state_->rows.lists());
}
void Ivf::State::encode(const Context& context, const Matrix<float>& left,
                        const MatrixView<std::uint8_t>& codes) const {
  if (quantizer) {
    const Matrix<std::uint8_t> encoded = quantizer->encode(context, left);
    std::memcpy(codes.data(), encoded.data(), codes.rows() * codes.cols());
    return;
  }
  quantize::encode_additive_rows("add", context, left.view(),
                                 {centroids.cols(), codes.cols(), additive_codewords},
                                 {.iterations = additive_iterations}, codes, nullptr);
}

Ivf::Ivf(Ivf&&) noexcept = default;
Ivf& Ivf::operator=(Ivf&&) noexcept = default;
Ivf::~Ivf() = default;

std::size_t Ivf::size() const { return state_->rows.rows(); }
std::size_t Ivf::dim() const { return state_->centroids.cols(); }
std::size_t Ivf::lists() const { return state_->rows.lists(); }
std::size_t Ivf::list_size(std::size_t list) const {
  require(list < lists(), "list_size: a list of 0 to {} expected, given {}", lists() - 1, list);
  return state_->rows.view(list).rows;
}
std::size_t Ivf::code_bytes() const { return state_->rows.code_bytes(); }
Metric Ivf::metric() const { return state_->metric; }
MatrixView<const float> Ivf::centroids() const { return state_->centroids; }
const ProductQuantizer* Ivf::quantizer() const { return state_->quantizer ? &*state_->quantizer : nullptr; }
std::span<const float> Ivf::additive_codewords() const { return state_->additive_codewords; }
std::string_view Ivf::codec() const {
  if (!state_->has_codes()) return "flat";
  return state_->quantizer ? "pq" : "lsq";
}
std::size_t Ivf::probes() const { return state_->probes; }
std::size_t Ivf::candidates(std::size_t k) const { return state_->candidates_for(k); }
Id Ivf::next_id() const { return state_->next_id; }
const std::map<std::string, std::string>& Ivf::provenance() const { return state_->provenance; }
void Ivf::set_provenance(std::map<std::string, std::string> provenance) {
  state_->provenance = std::move(provenance);
}
const std::optional<Calibration>& Ivf::calibration() const { return state_->measured; }
void Ivf::set_probes(std::size_t probes) {
  require(probes >= 1 && probes <= lists(), "set_probes: 1 to {} lists expected, given {}", lists(), probes);
  state_->probes = probes;
  state_->measured.reset();
}

void Ivf::add(const Context& context, RowsView rows, std::span<const Id> ids) {
  State& state = *state_;
  check_rows("add", context, rows, state.centroids);
  require(rows.place().kind == DeviceKind::cpu, "add: rows must be on the host, given rows on {}",
          name(rows.place()));
  require(state.has_codes() || rows.type() == state.type,
          "add: rows of {} expected, as those of the training, given {}", name(state.type),
          name(rows.type()));
  require(ids.empty() || ids.size() == rows.rows(), "add: one id per row expected, given {} for {} rows",
          ids.size(), rows.rows());
  require(std::ranges::all_of(ids, [](Id id) { return id >= 0; }),
          "add: ids of 0 or larger expected, given {}", ids.empty() ? 0 : std::ranges::min(ids));
  require(std::ranges::find(ids, most_next_id) == ids.end(), "add: ids of at most {} expected, given {}",
          most_next_id - 1, most_next_id);
  require(!ids.empty() || rows.rows() <= static_cast<std::uint64_t>(most_next_id - state.next_id),
          "add: ids of at most {} expected, {} rows would have ids from {}", most_next_id - 1, rows.rows(),
          state.next_id);
  require(rows.rows() <= max_shard_rows - size(), "add: an index holds at most {} rows, given {} to {}",
          max_shard_rows, rows.rows(), size());
  if (rows.rows() == 0) return;
  const DefaultFloatEnvironment environment;
  check_finite("add", context, rows);
  // Everything that can fail comes before the first row is appended.
  MemoryBudget& budget = *context.state().budget;
  const std::size_t code_bytes = state.rows.code_bytes();
  Buffer<std::uint32_t> nearest(budget, rows.rows());
  Buffer<std::uint8_t> codes(budget, state.has_codes() ? rows.rows() * code_bytes : 0);
  ProgressMeter progress(context.state().options.progress, context.state().clock, "add", rows.rows());
  const Context quiet = context.without_progress();
  for (std::size_t first = 0; first < rows.rows(); first += index::added_batch_rows) {
    const RowsView batch = rows.slice(first, std::min(index::added_batch_rows, rows.rows() - first));
    const Neighbors found = assign(quiet, batch, state.centroids, {.metric = state.metric});
    for (std::size_t i = 0; i < batch.rows(); ++i)
      nearest[first + i] = static_cast<std::uint32_t>(found.ids.data()[i]);
    if (state.has_codes()) {
      const Reservation left_bytes(budget, batch.rows() * (dim() * sizeof(float) + code_bytes));
      Matrix<float> left(batch.rows(), dim());
      index::subtract_centroids(context, batch, state.centroids, {found.ids.data(), batch.rows()},
                                state.metric, left.view());
      state.encode(quiet, left, {codes.data() + first * code_bytes, batch.rows(), code_bytes});
    }
    progress.add(batch.rows());
  }
  std::vector<std::size_t> more(lists());
  for (const std::uint32_t list : nearest.span()) ++more[list];
  state.rows.reserve(more);
  for (std::size_t list = 0; list < lists(); ++list)
    if (more[list] != 0) state.list_changes(list);
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    const std::byte* const code = state.has_codes()
                                      ? reinterpret_cast<const std::byte*>(codes.data()) + row * code_bytes
                                      : rows.row(row);
    const Id id = ids.empty() ? state.next_id + static_cast<Id>(row) : ids[row];
    state.rows.append(nearest[row], {code, &id, 1});
  }
  state.next_id = ids.empty() ? state.next_id + static_cast<Id>(rows.rows())
                              : std::max(state.next_id, std::ranges::max(ids) + 1);
  progress.finish();
}

std::size_t Ivf::remove(const Context& context, std::span<const Id> ids) {
  State& state = *state_;
  const Context::State& caller = context.state();
  caller.cancel.check();
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
  // From here on nothing can fail.
  std::size_t removed = 0;
  for (std::size_t list = 0; list < lists(); ++list)
    if (drop[list].size() != 0) {
      state.list_changes(list);
      removed += state.rows.remove(list, drop[list].span());
    }
  progress.finish();
  return removed;
}

bool Ivf::has_quantizers_of(const Ivf& other) const {
  const State& mine = *state_;
  const State& theirs = *other.state_;
  if (mine.metric != theirs.metric || mine.type != theirs.type || !equal(mine.centroids, theirs.centroids) ||
      mine.quantizer.has_value() != theirs.quantizer.has_value() ||
      mine.additive_codewords != theirs.additive_codewords ||
      mine.additive_iterations != theirs.additive_iterations)
    return false;
  return !mine.quantizer || (mine.quantizer->bits() == theirs.quantizer->bits() &&
                             mine.quantizer->parts() == theirs.quantizer->parts() &&
                             std::ranges::equal(mine.quantizer->codebooks(), theirs.quantizer->codebooks()));
}

void Ivf::merge(const Context& context, const Ivf& other) {
  State& state = *state_;
  const State& more = *other.state_;
  require(&state != &more, "merge: another index expected, given the index itself");
  require(has_quantizers_of(other),
          "merge: an index with the same quantizers expected (made by one training), given another");
  require(other.size() <= max_shard_rows - size(), "merge: an index holds at most {} rows, given {} and {}",
          max_shard_rows, size(), other.size());
  const Context::State& caller = context.state();
  ProgressMeter progress(caller.options.progress, caller.clock, "merge", other.size());
  std::vector<std::size_t> sizes(lists());
  for (std::size_t list = 0; list < lists(); ++list) sizes[list] = state.rows.view(list).rows;
  try {
    for (std::size_t list = 0; list < lists(); ++list) {
      caller.cancel.check();
      const ListView view = more.rows.view(list);
      state.rows.reserve(list, view.rows);
      state.list_changes(list);
      state.rows.append(list, view);
      progress.add(view.rows);
    }
  } catch (...) {
    for (std::size_t list = 0; list < lists(); ++list) state.rows.truncate(list, sizes[list]);
    throw;
  }
  state.next_id = std::max(state.next_id, more.next_id);
  progress.finish();
}

Ivf Ivf::empty_copy() const { return empty_copy(state_->budget); }

Ivf Ivf::part(const Context& context, std::size_t first, std::size_t count) const {
  require(first <= size() && count <= size() - first, "part: rows of 0 to {} expected, given {} from {}",
          size(), count, first);
  const Context::State& caller = context.state();
  ProgressMeter progress(caller.options.progress, caller.clock, "part", count);
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
  progress.finish();
  return copy;
}

Ivf Ivf::empty_copy(const std::shared_ptr<MemoryBudget>& budget) const {
  const State& state = *state_;
  Matrix<float> centroids(lists(), dim());
  std::copy_n(state.centroids.data(), lists() * dim(), centroids.data());
  return Ivf(std::unique_ptr<State>(new State{.metric = state.metric,
                                              .type = state.type,
                                              .centroids = std::move(centroids),
                                              .quantizer = state.quantizer,
                                              .part_begins = state.part_begins,
                                              .additive_codewords = state.additive_codewords,
                                              .additive_iterations = state.additive_iterations,
                                              .centre = state.centre,
                                              .probes = state.probes,
                                              .candidates = state.candidates,
                                              .measured = state.measured,
                                              .provenance = state.provenance,
                                              .next_id = 0,
                                              .budget = budget,
                                              .file = {},
                                              .rows = index::InvertedLists(budget, lists(), code_bytes())}));
}

}  // namespace nearwise

// Calibration: a sample of the index's vectors is searched for in the index, and the results are compared
// with exact search.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "backend/stages.h"
#include "cluster/centroid_search.h"
#include "cluster/draw_rows.h"
#include "core/checked.h"
#include "core/distance.h"
#include "core/float_environment.h"
#include "core/fork.h"
#include "core/math/proportion_interval.h"
#include "core/math/random.h"
#include "ivf/entry_vectors.h"
#include "ivf/ivf_state.h"
#include "ivf/list_search.h"
#include "nearwise/exact.h"
#include "ops/check_rows.h"
#include "ops/exact_knn.h"
#include "ops/memory_limit.h"
#include "ops/merge_neighbors.h"

namespace nearwise {
namespace {

constexpr const char* calibrate_name = "Ivf.calibrate";
// All trial searches, relative to the exact search of the sample.
constexpr double trials_cost = 1;

}  // namespace

double ivf::calibration_cost(const RowsView& rows, const CalibrationOptions& options) {
  return (1 + trials_cost) * cluster::assignment_cost(rows, std::min(rows.rows(), options.queries));
}

void ivf::check_options(const CalibrationOptions& options) {
  require(options.target_recall > 0 && options.target_recall <= 1,
          "{}: target_recall must be above 0 and at most 1, got {}", calibrate_name, options.target_recall);
  require(options.queries >= 1, "{}: queries must be at least 1, got 0", calibrate_name);
  require(options.largest_k >= 1 && options.largest_k <= max_shard_rows,
          "{}: largest_k must be 1 to {}, got {}", calibrate_name, max_shard_rows, options.largest_k);
}

namespace {

// Training samples of the same seed use other random streams. The second round of k-means++ has this one too
// (cluster/random_streams.h), but what it draws decides about a single centroid.
constexpr std::uint64_t stream = 9;
// Vectors copied at a time for exact search.
constexpr std::size_t block_bytes = std::size_t{16} << 20;
// Working memory of a search.
constexpr std::uint64_t search_bytes = std::uint64_t{4} << 20;
// The default first, then more; fewer last, when the cost to beat is known. If 3200 do not suffice, the codes
// are too short for the data.
constexpr std::array<std::size_t, 8> candidates_to_try = {100, 200, 400, 800, 1600, 3200, 50, 25};
// Cost of re-ranking one candidate in units of scanning one code: a cache miss against a sequential read.
// SIFT1M, 16-byte codes, batch of 4000 (Sapphire Rapids, 2026-11-15): 0.3 to 0.5 us against 1 to 2.3 ns of
// CPU time.
constexpr double rows_per_candidate = 128;
// For the largest k, one query in 4 is searched for: the share of 100 neighbours that a query finds varies
// about half as much as that of 10, and its search takes several times as long.
constexpr std::size_t queries_per_wide_one = 4;

std::size_t exact_block_rows(std::size_t dim, ElementType type) {
  return std::max<std::size_t>(1024, block_bytes / (dim * element_size(type)));
}

// All ids: sorted, without duplicates; or in the order of the lists.
Buffer<Id> ids_of(MemoryBudget& budget, const ivf::InvertedLists& lists, bool sorted, std::size_t& count) {
  Buffer<Id> ids(budget, lists.rows());
  Id* end = ids.data();
  for (std::size_t list = 0; list < lists.lists(); ++list)
    end = std::copy_n(lists.view(list).ids, lists.view(list).rows, end);
  if (sorted) {
    std::sort(ids.data(), end);
    end = std::unique(ids.data(), end);
  }
  count = static_cast<std::size_t>(end - ids.data());
  return ids;
}

// The vectors of the index: given rows by id, or what the index itself holds.
class Vectors {
 public:
  Vectors(const IvfInternals::State& state, const RowsView& rows)
      : state_(state), entries_(state), rows_(rows) {
    if (are_given()) return;
    firsts_.reserve(state.rows.lists() + 1);
    firsts_.push_back(0);
    for (std::size_t list = 0; list < state.rows.lists(); ++list)
      firsts_.push_back(firsts_.back() + state.rows.view(list).rows);
  }

  bool are_given() const { return rows_.rows() != 0; }
  std::size_t dim() const { return entries_.dim(); }
  ElementType type() const { return are_given() ? rows_.type() : entries_.type(); }
  // The vector of ids[place]; `ids` as of ids_of(), sorted if rows are given.
  void copy(std::span<const Id> ids, std::size_t place, std::byte* out) const {
    if (are_given()) {
      std::memcpy(out, rows_.row(static_cast<std::size_t>(ids[place])), dim() * element_size(type()));
      return;
    }
    const std::size_t list =
        static_cast<std::size_t>(std::ranges::upper_bound(firsts_, place) - firsts_.begin()) - 1;
    entries_.copy(state_.rows.view(list), place - firsts_[list], out);
  }

 private:
  const IvfInternals::State& state_;
  const ivf::EntryVectors entries_;
  const RowsView& rows_;
  std::vector<std::size_t> firsts_;  // [lists + 1] place of the first vector of each list
};

// Contiguous copies of the vectors at some places of `ids`.
class CopiedVectors {
 public:
  template <typename PlaceOf>
  CopiedVectors(const Context& context, const Vectors& vectors, std::span<const Id> ids, std::size_t count,
                const PlaceOf& place_of)
      : row_bytes_(vectors.dim() * element_size(vectors.type())),
        copies_(*context.state().budget, checked_multiply(count, row_bytes_, "bytes of rows")),
        view_(copies_.data(), vectors.type(), count, vectors.dim(), row_bytes_) {
    for (std::size_t i = 0; i < count; ++i) vectors.copy(ids, place_of(i), copies_.data() + i * row_bytes_);
  }

  const RowsView& view() const { return view_; }

 private:
  std::size_t row_bytes_;
  Buffer<std::byte> copies_;
  RowsView view_;
};

// The ids found for each query, without the query itself; at most k.
std::vector<std::vector<Id>> without_self(const Neighbors& found, std::span<const Id> queries,
                                          std::size_t k) {
  std::vector<std::vector<Id>> others(queries.size());
  for (std::size_t query = 0; query < queries.size(); ++query)
    for (const Id id : found.ids.row(query))
      if (id != no_id && id != queries[query] && others[query].size() < k) others[query].push_back(id);
  return others;
}

// Exact search among the vectors with these ids, in blocks: they may be in a mapped file, and given rows may
// hold vectors that are not in the index.
Neighbors exact_neighbors(const Context& context, const RowsView& queries, const Vectors& vectors,
                          std::span<const Id> ids, std::size_t k, Metric metric) {
  const std::size_t block_rows = exact_block_rows(vectors.dim(), vectors.type());
  Neighbors best{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
  std::fill_n(best.ids.data(), queries.rows() * k, no_id);
  std::fill_n(best.distances.data(), queries.rows() * k, padding_distance(metric));
  Stages stages(context, "calibrate");
  for (std::size_t first = 0; first < ids.size(); first += block_rows) {
    const std::span<const Id> some = ids.subspan(first, std::min(block_rows, ids.size() - first));
    const CopiedVectors block(context, vectors, ids, some.size(), [&](std::size_t i) { return first + i; });
    Neighbors found = knn(
        stages.next(static_cast<double>(some.size()), static_cast<double>(ids.size() - first - some.size())),
        queries, block.view(), k, {.metric = metric, .short_rows = ShortRows::pad});
    for (Id& id : std::span(found.ids.data(), queries.rows() * k))
      if (id != no_id) id = some[static_cast<std::size_t>(id)];
    Neighbors joined{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
    const std::vector<NeighborsView> parts = {{best.ids.view(), best.distances.view()},
                                              {found.ids.view(), found.distances.view()}};
    merge_neighbors(*context.state().threads, metric, parts, joined.ids.view(), joined.distances.view());
    best = std::move(joined);
  }
  stages.finish();
  return best;
}

// Whether the lower end of the confidence interval must reach the target, or the value itself.
enum class Margin : std::uint8_t { interval, none };

bool reaches(const RecallEstimate& recall, double target, Margin margin) {
  return (margin == Margin::interval ? recall.low : recall.value) >= target || recall.value == 1;
}

// Vectors of the index that are searched for, and their exact neighbours, themselves included.
struct Sample {
  std::size_t all_rows = 0;  // of the index
  RowsView queries;
  std::span<const Id> ids;
  const Neighbors& exact;
};

// The recall of searches for the k nearest neighbours of the sample, or of one in `every` of it.
class Trial {
 public:
  Trial(Stages& stages, const Ivf& index, const Sample& sample, std::size_t k, std::size_t every = 1)
      : stages_(stages),
        index_(index),
        all_rows_(sample.all_rows),
        queries_(sample.queries.data(), sample.queries.type(), divide_up(sample.ids.size(), every),
                 sample.queries.dim(), every * sample.queries.stride_bytes()),
        k_(k) {
    const std::vector<std::vector<Id>> truth = without_self(sample.exact, sample.ids, k);
    for (std::size_t i = 0; i < sample.ids.size(); i += every) {
      ids_.push_back(sample.ids[i]);
      truth_.push_back(truth[i]);
    }
  }

  std::size_t k() const { return k_; }

  // candidates 0: without re-ranking.
  RecallEstimate recall(std::size_t probes, std::size_t candidates) const {
    return measured(probes, candidates).all;
  }
  // The same search for one neighbour: it would find the first of these.
  RecallEstimate recall_of_first(std::size_t probes, std::size_t candidates) const {
    return measured(probes, candidates).first;
  }

 private:
  struct Recall {
    RecallEstimate all;
    RecallEstimate first;
  };

  const Recall& measured(std::size_t probes, std::size_t candidates) const {
    const auto [entry, is_new] = known_.try_emplace({probes, candidates});
    if (is_new) entry->second = measure(probes, candidates);
    return entry->second;
  }

  Recall measure(std::size_t probes, std::size_t candidates) const {
    // One more than is compared, as the query itself is found too.
    // The number of trials is not known: each takes a part of what is left.
    constexpr double later_trials = 15;
    const Neighbors found = index_.search(
        stages_.next(1, later_trials), queries_, k_ + 1,
        {.probes = probes, .codes_only = candidates == 0, .candidates = std::max(candidates, k_ + 1)});
    std::vector<std::vector<Id>> others = without_self(found, ids_, k_);
    // Integers, so that the mean is rounded once.
    std::uint64_t hits = 0;
    std::uint64_t squares = 0;
    std::uint64_t first_hits = 0;
    for (std::size_t query = 0; query < ids_.size(); ++query) {
      std::vector<Id>& own = others[query];
      first_hits += !own.empty() && own.front() == truth_[query].front() ? 1 : 0;
      std::ranges::sort(own);
      const auto in_truth = static_cast<std::uint64_t>(
          std::ranges::count_if(truth_[query], [&](Id id) { return std::ranges::binary_search(own, id); }));
      hits += in_truth;
      squares += in_truth * in_truth;
    }
    return {estimate(hits, squares, k_), estimate(first_hits, first_hits, 1)};
  }

  RecallEstimate estimate(std::uint64_t hits, std::uint64_t squares, std::size_t neighbors) const {
    const auto queries = static_cast<double>(ids_.size());
    const auto k = static_cast<double>(neighbors);
    const double mean = static_cast<double>(hits) / (queries * k);
    if (ids_.size() == all_rows_) return {mean, mean, mean, ids_.size()};
    const double mean_square = static_cast<double>(squares) / (queries * k * k);
    const ProportionInterval interval =
        proportion_interval(mean, std::max(0.0, mean_square - mean * mean), ids_.size());
    return {mean, std::min(mean, interval.low), std::max(mean, interval.high), ids_.size()};
  }

  Stages& stages_;
  const Ivf& index_;
  const std::size_t all_rows_;
  const RowsView queries_;
  const std::size_t k_;
  std::vector<Id> ids_;
  std::vector<std::vector<Id>> truth_;
  mutable std::map<std::pair<std::size_t, std::size_t>, Recall> known_;
};

struct Setting {
  std::size_t probes = 0;
  std::size_t candidates = 0;
  RecallEstimate recall = {};
};

// Numbers of probes to try.
struct ProbeRange {
  std::size_t lists = 0;   // the most
  std::size_t fewest = 2;  // a vector near the border of its list has neighbours in the next one
  std::size_t first = 0;   // tried first; 0: the fewest
  std::size_t steps = 0;  // the result may exceed the smallest by a share of 1 / steps; 0: it is the smallest
};

// The fewest probes that reach the target. All lists if none reaches it.
Setting smallest_probes(const Trial& trial, const ProbeRange& range, std::size_t candidates, double target,
                        Margin margin) {
  const auto recall = [&](std::size_t probes) { return trial.recall(probes, candidates); };
  const auto is_enough = [&](std::size_t probes) { return reaches(recall(probes), target, margin); };
  const std::size_t lists = range.lists;
  const std::size_t fewest = std::min(range.fewest, lists);
  std::size_t enough = std::clamp(range.first, fewest, lists);
  std::size_t too_few = fewest - 1;
  while (!is_enough(enough) && enough < lists) {
    too_few = enough;
    enough = std::min(2 * enough, lists);
  }
  if (!is_enough(enough)) return {lists, candidates, recall(lists)};
  while (enough - too_few > std::max<std::size_t>(1, range.steps == 0 ? 0 : enough / range.steps)) {
    const std::size_t middle = too_few + (enough - too_few) / 2;
    (is_enough(middle) ? enough : too_few) = middle;
  }
  return {enough, candidates, recall(enough)};
}

// More candidates need fewer probes. The cheapest pair that reaches the target, or the one with the highest
// recall.
Setting cheapest(const Trial& trial, const Ivf& index, double target, bool rerank) {
  if (!rerank) return smallest_probes(trial, {.lists = index.lists()}, 0, target, Margin::interval);
  const double list_rows = static_cast<double>(index.size()) / static_cast<double>(index.lists());
  const auto cost = [&](const Setting& setting) {
    return static_cast<double>(setting.probes) * list_rows +
           rows_per_candidate * static_cast<double>(setting.candidates);
  };
  Setting best;
  for (const std::size_t candidates : candidates_to_try) {
    std::size_t most_probes = index.lists();
    if (reaches(best.recall, target, Margin::interval)) {
      // Only numbers of probes that would be cheaper than the best pair so far.
      const double rest = cost(best) - cost({.probes = 0, .candidates = candidates});
      if (rest < 2 * list_rows) continue;
      most_probes = std::min(most_probes, static_cast<std::size_t>(rest / list_rows));
    }
    const Setting found =
        smallest_probes(trial, {.lists = most_probes}, candidates, target, Margin::interval);
    if (reaches(found.recall, target, Margin::interval)
            ? !reaches(best.recall, target, Margin::interval) || cost(found) < cost(best)
            : found.recall.value > best.recall.value)
      best = found;
  }
  return best;
}

// `found` if it reaches the target with the margin. If not even all lists do, the value without a margin, or
// the target as a share of the recall of all lists.
Setting settle(const Trial& trial, const ProbeRange& range, const Setting& found, double target) {
  if (reaches(found.recall, target, Margin::interval)) return found;
  const double value = found.recall.value;
  return smallest_probes(trial, range, found.candidates, value >= target ? target : target * value,
                         Margin::none);
}

// For one neighbour: the probes of the default setting, or more. The value decides, as the recall of one
// neighbour varies so much between queries that most samples have no margin.
RecallAtK calibrate_first(const Trial& trial, const Trial& first, std::size_t lists,
                          const Setting& default_setting, double target) {
  const RecallEstimate recall = trial.recall_of_first(default_setting.probes, default_setting.candidates);
  if (reaches(recall, target, Margin::none))
    return {1, default_setting.probes, recall, trial.recall_of_first(default_setting.probes, 0)};
  const ProbeRange range = {.lists = lists, .fewest = default_setting.probes};
  const Setting more = smallest_probes(first, range, default_setting.candidates, target, Margin::none);
  const Setting found =
      reaches(more.recall, target, Margin::none) ? more : settle(first, range, more, target);
  return {1, found.probes, found.recall, first.recall(found.probes, 0)};
}

// For more neighbours, with candidates in proportion: at least the probes of the default.
RecallAtK calibrate_more(const Trial& trial, std::size_t lists, const Setting& default_setting,
                         double target) {
  const std::size_t candidates =
      default_setting.candidates == 0 ? 0 : ivf::candidates_for(default_setting.candidates, trial.k());
  // On SIFT1M, 100 neighbours take 1.4 (PQ) and 1.7 (flat) times the probes of 10.
  const ProbeRange range = {.lists = lists,
                            .fewest = default_setting.probes,
                            .first = default_setting.probes + default_setting.probes / 2,
                            .steps = 8};
  const Setting found =
      settle(trial, range, smallest_probes(trial, range, candidates, target, Margin::interval), target);
  return {trial.k(), found.probes, found.recall, trial.recall(found.probes, 0)};
}

// Upper bound for an index of at least 2 vectors.
std::uint64_t bytes_of(const Context& context, const Ivf& index, const Vectors& vectors,
                       const CalibrationOptions& options) {
  const IvfInternals::State& state = IvfInternals::state_of(index);
  const std::size_t count = state.rows.rows();
  const std::size_t row_bytes = vectors.dim() * element_size(vectors.type());
  const std::size_t block_rows = std::min(count, exact_block_rows(vectors.dim(), vectors.type()));
  const RowsView block(nullptr, vectors.type(), block_rows, vectors.dim(), row_bytes);
  const RowsView queries(nullptr, vectors.type(), std::min(options.queries, count), vectors.dim(), row_bytes);
  const std::size_t k = std::min(std::max(ivf::calibration_neighbors, options.largest_k), count - 1) + 1;
  const bool rerank = options.rerank && state.rows.vector_bytes() != 0;
  const std::size_t candidates = ivf::candidates_for(std::ranges::max(candidates_to_try), k);
  const ivf::SearchShape trial = {.query_type = queries.type(),
                                  .queries = queries.rows(),
                                  .k = k,
                                  .candidates = rerank ? std::max(k, std::min(count, candidates)) : k,
                                  .probes = index.lists()};
  const std::uint64_t exact =
      buffer_bytes(block_rows, row_bytes) + least_knn_bytes(context, queries, block, k, state.metric);
  return buffer_bytes(count, sizeof(Id)) + buffer_bytes(queries.rows(), sizeof(Id)) +
         buffer_bytes(queries.rows(), row_bytes) +
         std::max(exact, ivf::least_search_bytes(context, index, trial));
}

}  // namespace

std::uint64_t ivf::calibration_bytes(const RowsView& rows, const CalibrationOptions& options) {
  const std::uint64_t row_bytes = rows.dim() * element_size(rows.type());
  const std::uint64_t block = std::min(rows.rows(), exact_block_rows(rows.dim(), rows.type())) * row_bytes;
  // Exact neighbours: the best so far, those of a block, and both merged.
  const std::uint64_t exact = 3 * (sizeof(Id) + sizeof(float)) * std::min(rows.rows(), options.largest_k + 1);
  // Ids, copied queries, a copied block in its own form and packed, answers of a few searches.
  return rows.rows() * sizeof(Id) + std::min(rows.rows(), options.queries) * (2 * row_bytes + exact + 4096) +
         3 * block + search_bytes;
}

Calibration Ivf::calibrate(const Context& context, const CalibrationOptions& options) {
  return calibrate(context, RowsView(), options);
}

Calibration Ivf::calibrate(const Context& context, RowsView rows, const CalibrationOptions& options) {
  return IvfInternals::calibrate(*this, context, rows, options, MemoryCheck::now);
}

Calibration IvfInternals::calibrate(Ivf& index, const Context& context, const RowsView& rows,
                                    const CalibrationOptions& options, MemoryCheck check) {
  State& state = *index.state_;
  ivf::check_options(options);
  // Searches go on, among them those of the trials.
  index::IndexLock::Changing changing(state.lock, &context.state().cancel);
  if (rows.rows() != 0) {
    check_rows(calibrate_name, context, rows, state.centroids, {"vectors", "index"});
    require(rows.place().kind == DeviceKind::cpu, "{}: rows must be on the host, got rows on {}",
            calibrate_name, name(rows.place()));
    require(static_cast<std::uint64_t>(state.next_id) <= rows.rows(),
            "{}: there must be a row for every id, got {} rows for ids up to {}", calibrate_name, rows.rows(),
            state.next_id - 1);
  } else {
    require(index.vectors() != VectorStorage::none,
            "{}: the index keeps no vectors: pass the vectors by id, got none", calibrate_name);
  }
  const DefaultFloatEnvironment environment;
  context.state().cancel.check();
  std::size_t count = 0;
  const Vectors vectors(state, rows);
  if (index.size() >= 2 && check == MemoryCheck::now)
    check_memory(calibrate_name, context, bytes_of(context, index, vectors, options));
  const Buffer<Id> ids = ids_of(*context.state().budget, state.rows, vectors.are_given(), count);
  require(count >= 2, "{}: the index must hold at least 2 vectors, got {}", calibrate_name, count);

  const std::size_t sample = std::min(options.queries, count);
  Buffer<Id> drawn(*context.state().budget, sample);
  const Random random(context.seed(), stream);
  const auto drawn_place = [&](std::size_t i) { return cluster::draw_from_part(random, count, sample, i); };
  for (std::size_t i = 0; i < sample; ++i) drawn[i] = ids[drawn_place(i)];
  const CopiedVectors queries(context, vectors, {ids.data(), count}, sample, drawn_place);

  const std::size_t k = std::min(ivf::calibration_neighbors, count - 1);
  const std::size_t most = std::min(std::max(k, options.largest_k), count - 1);
  Stages stages(context, calibrate_name);
  const Neighbors exact = exact_neighbors(stages.next(1, trials_cost), queries.view(), vectors,
                                          {ids.data(), count}, most + 1, state.metric);
  Stages trials(stages.next(1, 0), calibrate_name);
  const Sample searched = {count, queries.view(), drawn.span(), exact};
  const Trial trial(trials, index, searched, k);
  // Flat distances are exact already.
  const bool rerank = options.rerank && state.rows.vector_bytes() != 0;
  const Setting found = settle(trial, {.lists = index.lists()},
                               cheapest(trial, index, options.target_recall, rerank), options.target_recall);

  Calibration calibration = {.probes = found.probes,
                             .recall = found.recall,
                             .recall_without_rerank = found.recall,
                             .target_recall = options.target_recall,
                             .neighbors = k,
                             .rows = index.size()};
  if (rerank) {
    calibration.candidates = found.candidates;
    calibration.recall_without_rerank = trial.recall(found.probes, 0);
  }
  if (k > 1)
    calibration.other_k.push_back(calibrate_first(trial, Trial(trials, index, searched, 1), index.lists(),
                                                  found, options.target_recall));
  // All vectors, if all were asked for: then nothing depends on their order.
  const std::size_t every = sample == count ? 1 : queries_per_wide_one;
  if (most > k)
    calibration.other_k.push_back(calibrate_more(Trial(trials, index, searched, most, every), index.lists(),
                                                 found, options.target_recall));
  std::optional<Calibration> kept = calibration;
  {
    const index::IndexLock::Writing writing(changing, &context.state().cancel);
    const NoFork whole;
    if (rerank) state.candidates = found.candidates;
    state.probes = found.probes;
    state.calibration = std::move(kept);
  }
  stages.finish();
  return calibration;
}

}  // namespace nearwise

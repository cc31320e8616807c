// Calibration of a graph index: the smallest beam that reaches a recall on a sample.
#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <map>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "backend/stages.h"
#include "cluster/draw_rows.h"
#include "core/checked.h"
#include "core/distance.h"
#include "core/float_environment.h"
#include "core/fork.h"
#include "core/math/random.h"
#include "graph_index/graph_index_state.h"
#include "graph_index/memory_needs.h"
#include "graph_index/search_graph.h"
#include "nearwise/exact.h"
#include "ops/check_rows.h"
#include "ops/finite_rows.h"
#include "ops/gather_rows.h"
#include "ops/memory_limit.h"
#include "ops/recall_estimate.h"

namespace nearwise {
namespace {

using State = GraphIndexInternals::State;
using graph_index::SearchedGraph;

constexpr const char* calibrate_name = "GraphIndex.calibrate";
// A random stream that the training of an index with the same seed does not use (cluster/random_streams.h).
constexpr std::uint64_t sample_stream = 21;
// The widest beam that is tried, relative to k; if that does not suffice, the graph or its codes do not.
constexpr std::size_t max_beam = 4096;

// For progress, in the time of one trial: all trials, as many as are expected, and the exact search of the
// sample.
constexpr std::size_t expected_trials = 16;
double exact_cost(const SearchedGraph& graph) {
  constexpr double rows_of_trial = 200'000;
  return static_cast<double>(graph.rows.count()) / rows_of_trial;
}

// How a trial searches.
struct Mode {
  bool evaluates_beam = false;  // as in GraphCalibration
  // The row that is searched for is not there; otherwise searches pass it, and it is not counted.
  bool is_absent = true;
  // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm
  friend auto operator<=>(const Mode&, const Mode&) = default;
};
// The first one that reaches the target. Where hardly any edges are needed, in one dimension or among
// duplicates, a row can be the only path between its neighbours: then it may be passed.
constexpr std::array<Mode, 3> modes = {Mode{false, true}, Mode{true, true}, Mode{true, false}};

// Queries and their exact neighbours.
class Trial {
 public:
  // own: the rows that the queries are, or empty.
  // trials: their number so far, of all k.
  Trial(Stages& stages, std::size_t& trials, const SearchedGraph& graph, const RowsView& queries,
        std::span<const std::uint32_t> own, std::size_t k)
      : stages_(stages),
        trials_(trials),
        graph_(graph),
        metric_(graph.rows.codec->metric),
        queries_(queries),
        own_(own),
        k_(k),
        population_(own.empty() ? queries.rows() + 1 : graph.live_count()) {
    // One more, where the query itself is a row.
    exact_ = knn(stages_.next(exact_cost(graph), expected_trials), queries, graph.rows.vectors,
                 k + (own.empty() ? 0 : 1),
                 {.metric = metric_, .filter = graph.live ? graph.live->filter : Filter()});
  }

  RecallEstimate recall(std::size_t beam, const Mode& mode) const {
    const auto known = recalls_.find({beam, mode});
    if (known != recalls_.end()) return known->second;
    const bool is_passed = !own_.empty() && !mode.is_absent;
    // As searches among removed rows do, the beam becomes wider by their share.
    const std::size_t width = divide_up(beam * graph_.rows.count(), graph_.live_count());
    // Where there are more, each takes a part of what is left.
    const auto later =
        static_cast<double>(std::max<std::size_t>(3, expected_trials - std::min(expected_trials, ++trials_)));
    const Neighbors found = graph_index::search_rows(stages_.next(1, later), graph_, queries_,
                                                     {.k = k_ + (is_passed ? 1 : 0),
                                                      .beam = {width, mode.evaluates_beam},
                                                      .allowed = graph_.live_bits(),
                                                      .absent = mode.is_absent ? own_ : own_.first(0)});
    std::vector<std::size_t> hits(queries_.rows(), 0);
    for (std::size_t query = 0; query < queries_.rows(); ++query) {
      // A neighbour counts as found if it is no farther than the k-th exact one.
      const float farthest = sort_key(metric_, kth_distance(query));
      for (std::size_t i = 0; i < found.ids.cols(); ++i)
        if (found.ids(query, i) != no_id && !is_own(query, found.ids(query, i)) &&
            sort_key(metric_, found.distances(query, i)) <= farthest)
          ++hits[query];
      hits[query] = std::min(hits[query], k_);
    }
    return recalls_[{beam, mode}] = estimate_recall(hits, k_, population_);
  }

  // The smallest beam that reaches the target, or the best one.
  std::size_t smallest_beam(double target, const Mode& mode) const {
    const std::size_t most = std::min(graph_.live_count(), std::max(max_beam, 16 * k_));
    std::size_t enough = std::min(k_, most);
    std::size_t too_few = enough - 1;
    while (!is_enough(enough, mode, target)) {
      if (enough == most || is_hopeless(enough, mode, target)) return enough;
      too_few = enough;
      enough = std::min(most, 2 * enough);
    }
    while (enough - too_few > std::max<std::size_t>(1, enough / 16)) {
      const std::size_t middle = too_few + (enough - too_few) / 2;
      (is_enough(middle, mode, target) ? enough : too_few) = middle;
    }
    return enough;
  }

 private:
  // Twice the beam has hardly found more, and more is missing: codes are too coarse.
  bool is_hopeless(std::size_t beam, const Mode& mode, double target) const {
    constexpr double min_gain = 0.002;
    constexpr double min_missing = 0.01;
    const auto half = recalls_.find({beam / 2, mode});
    if (half == recalls_.end()) return false;
    const double value = recall(beam, mode).value;
    return value - half->second.value < min_gain && target - value > min_missing;
  }

  bool is_enough(std::size_t beam, const Mode& mode, double target) const {
    const RecallEstimate measured = recall(beam, mode);
    return measured.low >= target || measured.value == 1;
  }

  bool is_own(std::size_t query, Id row) const {
    return !own_.empty() && row == static_cast<Id>(own_[query]);
  }

  // The k-th distance without the query itself.
  float kth_distance(std::size_t query) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < exact_.ids.cols(); ++i)
      if (!is_own(query, exact_.ids(query, i)) && ++count == k_) return exact_.distances(query, i);
    return exact_.distances(query, exact_.ids.cols() - 1);
  }

  Stages& stages_;
  std::size_t& trials_;
  const SearchedGraph& graph_;
  const Metric metric_;
  const RowsView& queries_;
  const std::span<const std::uint32_t> own_;
  const std::size_t k_;
  const std::size_t population_;
  Neighbors exact_;
  mutable std::map<std::pair<std::size_t, Mode>, RecallEstimate> recalls_;  // by beam and mode
};

}  // namespace

GraphCalibration graph_index::calibrate_graph(const Context& context, const SearchedGraph& graph,
                                              const GraphCalibrationOptions& options) {
  const std::size_t size = graph.live_count();
  const bool has_queries = options.queries.rows() != 0;
  // A sample of the vectors, each searched for as if it were not in the index.
  std::vector<std::uint32_t> own;
  GatheredRows gathered;
  if (!has_queries) {
    const std::size_t sample = std::min(options.sample, size);
    const Random random(context.seed(), sample_stream);
    std::uint32_t row = 0;
    std::size_t passed = 0;  // live rows before `row`
    for (std::size_t i = 0; i < sample; ++i) {
      const std::size_t drawn = cluster::draw_from_part(random, size, sample, i);  // ascending
      for (; passed < drawn || !graph.is_live(row); ++row) passed += graph.is_live(row) ? 1 : 0;
      own.push_back(row);
    }
    gathered = GatheredRows(context, graph.rows.vectors, own);
  }
  const RowsView queries = has_queries ? options.queries : gathered.view();
  const std::size_t others = size - (has_queries ? 0 : 1);
  const std::size_t few = std::min(graph_index::calibration_neighbors, others);
  const std::size_t many = std::min(graph_index::many_neighbors, others);

  Stages stages(context, calibrate_name);
  std::size_t trials = 0;
  const Trial few_trial(stages, trials, graph, queries, own, few);
  const Trial many_trial(stages, trials, graph, queries, own, many);
  GraphCalibration calibration = {.target_recall = options.target_recall, .neighbors = few};
  for (const Mode& mode : modes) {
    calibration.evaluates_beam = mode.evaluates_beam;
    calibration.beam = few_trial.smallest_beam(options.target_recall, mode);
    calibration.recall = few_trial.recall(calibration.beam, mode);
    // Not by this mode: the next one.
    if (calibration.recall.value < options.target_recall && &mode != &modes.back()) continue;
    calibration.beam_of_100 =
        std::max(calibration.beam, many_trial.smallest_beam(options.target_recall, mode));
    calibration.recall_of_100 = many_trial.recall(calibration.beam_of_100, mode);
    if (calibration.reached()) break;
  }
  stages.finish();
  return calibration;
}

GraphCalibration GraphIndex::calibrate(const Context& context, const GraphCalibrationOptions& options) {
  return GraphIndexInternals::calibrate(*this, context, options, MemoryCheck::now);
}

GraphCalibration GraphIndexInternals::calibrate(GraphIndex& index, const Context& context,
                                                const GraphCalibrationOptions& options, MemoryCheck check) {
  State& state = *index.state_;
  require(options.target_recall > 0 && options.target_recall <= 1,
          "{}: target_recall must be above 0 and at most 1, got {}", calibrate_name, options.target_recall);
  require(options.sample >= 1, "{}: sample must be at least 1, got 0", calibrate_name);
  // Searches go on meanwhile; they and the trials read the same rows.
  index::IndexLock::Changing changing(state.lock, &context.state().cancel);
  const SearchedGraph& graph = state.graph;
  const std::size_t size = graph.live_count();
  require(size >= 2, "{}: the index must hold at least 2 vectors, got {}", calibrate_name, size);
  const DefaultFloatEnvironment environment;
  if (options.queries.rows() != 0) {
    check_queries(calibrate_name, context, options.queries, graph);
    check_finite(calibrate_name, context, options.queries, 0, "query");
  }
  if (check == MemoryCheck::now)
    check_memory(calibrate_name, context,
                 graph_index::calibrating_bytes(context, graph.rows.vectors, options));
  const GraphCalibration calibration = graph_index::calibrate_graph(context, graph, options);
  {
    const index::IndexLock::Writing writing(changing, &context.state().cancel);
    const NoFork whole;
    state.set_calibration(calibration);
  }
  return calibration;
}

}  // namespace nearwise

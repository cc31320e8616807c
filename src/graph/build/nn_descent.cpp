#include "graph/build/nn_descent.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "backend/stages.h"
#include "core/check.h"
#include "core/distance.h"
#include "graph/recall_sample.h"
#include "nearwise/exact.h"
#include "ops/check_rows.h"
#include "ops/memory_limit.h"

namespace nearwise::graph {
namespace {

// Runs steps until the target recall is reached or they no longer improve it.
class NnDescent {
 public:
  NnDescent(const char* operation, const Context& context, const RowsView& rows,
            const KnnGraphOptions& options, const Tuning& tuning)
      : options_(options),
        partitions_cost_(Builder::partitions_cost(rows, options, tuning)),
        round_cost_(Builder::round_cost(rows, tuning)),
        stages_(context, operation),
        rows_(rows.rows()),
        entries_(static_cast<double>(rows.rows()) * static_cast<double>(tuning.list)),
        max_pairs_(rows.rows() > tuning.last_resort_rows
                       ? std::numeric_limits<double>::infinity()
                       : static_cast<double>(rows.rows()) * static_cast<double>(rows.rows()) / 4),
        sample_(stages_.next(static_cast<double>(tuning.measured * rows.rows()), partitions_cost_), rows,
                options.degree, options.metric, tuning.measured),
        builder_(context, rows, options, tuning, &sample_) {}

  // Returns whether the target was reached. Gives up after half the cost of exact search if that is the last
  // resort.
  bool run(const Tuning& tuning, const FirstStep& first) {
    for (std::uint64_t attempt = 0; attempt < tuning.attempts; ++attempt) {
      const Context context = stages_.next(partitions_cost_, expected_rounds * round_cost_);
      if (attempt == 0 && first)
        first(builder_, context);
      else
        builder_.join_partitions(context, attempt);
      if (note()) return true;
      if (builder_.spent_pairs() > max_pairs_) return false;
      for (std::size_t round = 0; round < tuning.rounds; ++round) {
        const double missing = options_.target_recall - rounds_.back().recall.low;
        const double before = rounds_.back().recall.value;
        builder_.descend(stages_.next(round_cost_, expected_rounds * round_cost_));
        if (note()) return true;
        if (builder_.spent_pairs() > max_pairs_) return false;
        // If an iteration closes less than a tenth of the gap, other partitions bring more.
        if (rounds_.back().recall.value - before < missing / 10) break;
        if (static_cast<double>(rounds_.back().updates) < entries_ / 10'000) break;
      }
      const bool exact_is_next = attempt + 1 == tuning.attempts && rows_ <= tuning.last_resort_rows;
      if (settle(exact_is_next ? rows_ / 16 : std::min(tuning.max_compared_rows, rows_ / 16))) return true;
    }
    return false;
  }

  // The context of exact search, if nothing else reached the target.
  Context last_resort() { return stages_.next(1, 0); }
  std::vector<GraphRound> take_rounds() { return std::move(rounds_); }
  Neighbors finish() {
    Neighbors neighbors = builder_.finish();
    stages_.finish();
    return neighbors;
  }

 private:
  // Compares the rows whose lists still change with all rows if there are at most `most`: cheaper than exact
  // search of all.
  bool settle(std::size_t most) {
    const std::vector<std::uint32_t> changing = builder_.changing_rows();
    if (changing.empty() || changing.size() > most) return false;
    builder_.compare_with_all(stages_.next(1, 1), changing);
    return note();
  }

  bool note() {
    rounds_.push_back(
        {.round = rounds_.size(), .updates = builder_.updates(), .recall = builder_.recall(sample_)});
    if (options_.on_round) options_.on_round(rounds_.back());
    return rounds_.back().recall.low >= options_.target_recall;
  }

  // Most builds reach the target without a round, few need more than one.
  static constexpr double expected_rounds = 0.05;

  const KnnGraphOptions& options_;
  const double partitions_cost_;
  const double round_cost_;
  Stages stages_;
  const std::size_t rows_;
  const double entries_;
  const double max_pairs_;
  RecallSample sample_;
  Builder builder_;
  std::vector<GraphRound> rounds_;
};

}  // namespace

void check_arguments(const char* operation, const Context& context, const RowsView& rows,
                     const KnnGraphOptions& options) {
  check_rows(operation, context, rows, rows);
  require(rows.place().kind == DeviceKind::cpu, "{}: rows must be on the host, got rows on {}", operation,
          name(rows.place()));
  require(rows.rows() <= max_entry_rows, "{}: rows must be at most {}, got {}", operation, max_entry_rows,
          rows.rows());
  require(options.degree >= 1, "{}: degree must be at least 1, got 0", operation);
  require(options.target_recall > 0 && options.target_recall <= 1,
          "{}: target_recall must be above 0 and at most 1, got {}", operation, options.target_recall);
}

KnnGraph exact_graph(const Context& context, const RowsView& rows, const KnnGraphOptions& options,
                     std::vector<GraphRound> rounds) {
  const RecallEstimate all = {.value = 1, .low = 1, .high = 1, .rows = rows.rows()};
  return {
      .neighbors = exact_knn_graph(context, rows, options.degree,
                                   {.metric = options.metric, .short_rows = ShortRows::pad}),
      .metric = options.metric,
      .report = {.method = GraphMethod::exact, .recall = all, .reached = true, .rounds = std::move(rounds)}};
}

KnnGraph run_nn_descent(const char* operation, const Context& context, const RowsView& rows,
                        const KnnGraphOptions& options, const Tuning& tuning, const FirstStep& first) {
  check_memory(operation, context, Builder::bytes(context, rows, options, tuning));
  std::vector<GraphRound> rounds;
  std::optional<Context> last_resort;
  {
    NnDescent nn_descent(operation, context, rows, options, tuning);
    const bool reached = nn_descent.run(tuning, first);
    rounds = nn_descent.take_rounds();
    if (reached || rows.rows() > tuning.last_resort_rows) {
      const Reservation reservation(*context.state().budget,
                                    rows.rows() * options.degree * (sizeof(Id) + sizeof(float)));
      const RecallEstimate recall = rounds.back().recall;
      return {.neighbors = nn_descent.finish(),
              .metric = options.metric,
              .report = {.method = GraphMethod::nn_descent,
                         .recall = recall,
                         .reached = reached,
                         .rounds = std::move(rounds)}};
    }
    last_resort = nn_descent.last_resort();
  }
  return exact_graph(*last_resort, rows, options, std::move(rounds));
}

}  // namespace nearwise::graph

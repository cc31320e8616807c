// Candidates of a search in inverted lists, for every query.
//
// As in exact search (candidates.h), scores only select what is evaluated and reported distances decide the
// results: they do not depend on how lists are scanned, in which order, or by how many threads. Differences:
// vectors are decoded when evaluated, equal distances are ordered by id, and any thread may add to any query.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "backend/cpu/lists/code_evaluator.h"
#include "backend/cpu/lists/list_bound.h"
#include "backend/cpu/lists/list_rows.h"
#include "backend/cpu/lists/product_panels.h"
#include "backend/cpu/lists/query_rows.h"
#include "backend/cpu/rows/answers.h"
#include "backend/cpu/rows/prepared_rows.h"
#include "backend/cpu/stream.h"
#include "backend/ops.h"
#include "core/math/score_bound.h"
#include "core/memory.h"

namespace nearwise::cpu {

class ListCollector {
 public:
  // Entries of a query's list. Longer lists need fewer clean-ups but lower the limit later, so more vectors
  // pass.
  static std::size_t list_capacity(std::size_t k) { return 2 * k + 64; }
  static std::size_t bytes_per_query(std::size_t k);
  // Memory of each thread while it evaluates.
  static std::uint64_t scratch_bytes(const ListSearchShape& shape);

  // Inputs of correct_scores(), for product codes.
  struct Correction {
    const ProductPanels* panels;
    const QueryRows* queries;
  };

  // lengths: of the queries, as `bound` takes them. form: of all scores passed to add().
  ListCollector(CpuStream& stream, std::span<const Lengths> lengths, const ListSearchArgs& args,
                const ListNumbers& numbers, const ListBound& bound, ScoreForm form,
                std::optional<Correction> correction);

  // Maximum score of a candidate, for vectors no longer than `longest`; NaN: scores have no error bound.
  float cutoff(std::size_t query, const Lengths& longest);
  // Adds vectors no longer than `longest`, with numbers from `first` to `last`.
  void add(std::size_t query, const Lengths& longest, std::span<const float> scores,
           std::span<const std::uint32_t> rows, std::uint32_t first, std::uint32_t last);
  // Vectors whose scores limit those of the results: one more for each that the query must not return.
  std::size_t wanted(std::size_t query) const { return k_ + args_.denied.count(query); }
  // Tells the collector that wanted() vectors, no longer than `longest`, have scores up to `score`.
  void limit_score(std::size_t query, const Lengths& longest, double score);
  // Searches a list of uncompressed vectors by estimates of their distances.
  void estimate(std::size_t query, std::size_t list);
  // Evaluates vectors that have no score.
  void evaluate(std::size_t query, std::uint32_t first_row, std::size_t count);
  // Writes the results of queries [first, end), once all scans are done.
  void finish(std::size_t first, std::size_t end);

 private:
  struct State {
    Lengths longest;  // upper bound over the vectors in the list
    double limit;     // vectors with a larger value are no results; read without the mutex
    std::uint32_t count;
    std::uint32_t answers;
  };
  struct List {
    float* scores;
    std::uint32_t* rows;
  };

  List list(std::size_t query) {
    return {scores_.data() + query * capacity_, rows_.data() + query * capacity_};
  }
  std::span<Answer> answers(std::size_t query) {
    return {answers_.data() + query * k_, states_[query].answers};
  }
  Id id_of(std::uint32_t row) const;
  void lower_limit(std::size_t query, double limit);
  void make_room(std::size_t query);
  void add_allowed(std::size_t query, std::span<const float> scores, std::span<const std::uint32_t> rows);
  void drop_excluded(std::size_t query);
  void evaluate_list(std::size_t query, CodeEvaluator& evaluator);
  // Offers rows[0 .. count) to the query's results. evaluator: after begin(query).
  void evaluate_rows(std::size_t query, CodeEvaluator& evaluator, const std::uint32_t* rows,
                     std::size_t count);
  // By key, then by id.
  bool is_better(const Answer& left, const Answer& right) const;
  void offer(std::size_t query, Answer answer);
  // Reduces the list to its k best with as few evaluations as possible. The query must have no results yet.
  void settle(std::size_t query, CodeEvaluator& evaluator);
  // Appends rows that are certainly among the best `wanted` of the list to `out`, drops those that certainly
  // are not, and keeps the others.
  void narrow(std::size_t query, std::size_t wanted, ScoreForm form, std::vector<std::uint32_t>& out);
  void correct_scores(std::size_t query);
  void write_answers(std::size_t query);
  // Replaces the list by the query's candidates.
  void list_candidates(std::size_t query, CodeEvaluator& evaluator);
  float cutoff_of(std::size_t query, const Lengths& longest, double limit, ScoreForm form) const {
    return bound_.cutoff(query, lengths_[query], longest, limit, form);
  }
  double limit_of(std::size_t query, const Lengths& longest, float score, ScoreForm form) const {
    return bound_.limit_from_score(query, lengths_[query], longest, score, form);
  }

  CpuStream& stream_;
  const std::span<const Lengths> lengths_;
  const ListSearchArgs& args_;
  const ListNumbers& numbers_;
  const std::size_t k_;  // candidates
  const std::size_t capacity_;
  const ListBound& bound_;
  const ScoreForm form_;
  const std::optional<Correction> correction_;
  Buffer<float> scores_;                 // [queries, capacity]
  Buffer<std::uint32_t> rows_;           // [queries, capacity]
  Buffer<State> states_;                 // [queries]
  Buffer<Answer> answers_;               // [queries, k] heaps, worst on top
  std::array<std::mutex, 256> mutexes_;  // query % 256
};

}  // namespace nearwise::cpu

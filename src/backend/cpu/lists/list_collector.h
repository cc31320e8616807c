// Candidates of a search in inverted lists, for every query.
//
// As in exact search (candidates.h), scores decide who is looked at and evaluations decide who is best: the answer does not
// depend on how lists are scanned, in which order, or by how many threads. Differences: rows are decoded when they are
// evaluated, equal distances are ordered by id, and any thread may add to any query.
#pragma once

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
#include "core/memory.h"
#include "core/score_bound.h"

namespace nearwise::cpu {

class ListCollector {
 public:
  // Entries of a query's list. Longer ones are cleaned up less often, but lower the limit later, so that more rows pass.
  static std::size_t list_capacity(std::size_t k) { return 2 * k + 64; }
  static std::size_t bytes_per_query(std::size_t k);
  // What each thread needs while it evaluates.
  static std::uint64_t scratch_bytes(const ListSearchShape& shape);

  // What takes packed scores further, of product codes: correct_scores().
  struct Correction {
    const ProductPanels* panels;
    const QueryRows* queries;
  };

  // lengths: of the queries as `bound` knows them. form: of all scores that are added.
  ListCollector(CpuStream& stream, std::span<const Lengths> lengths, const ListSearchArgs& args,
                const ListNumbers& numbers, const ListBound& bound, ScoreForm form,
                std::optional<Correction> correction);

  // The largest score that a row no longer than `longest` may have and still be of use; NaN: scores mean nothing.
  float cutoff(std::size_t query, const Lengths& longest);
  // Rows no longer than `longest` with their scores.
  void add(std::size_t query, const Lengths& longest, std::span<const float> scores,
           std::span<const std::uint32_t> rows);
  std::size_t wanted() const { return k_; }
  // So many rows in the query's lists, no longer than `longest`, have scores up to `score`.
  void limit_score(std::size_t query, const Lengths& longest, double score);
  // The rows of a list that are kept as they are, without scores: their distances are estimated.
  void estimate(std::size_t query, std::size_t list);
  // Rows whose scores mean nothing.
  void evaluate(std::size_t query, std::uint32_t first_row, std::size_t count);
  // Writes the answers of queries [first, end). All have been added.
  void finish(std::size_t first, std::size_t end);

 private:
  struct State {
    Lengths longest;  // of the rows that may stand in the list
    double limit;     // a row whose value exceeds it is no answer; read without the mutex
    std::uint32_t count;
    std::uint32_t answers;
  };
  // A list of candidates: their scores, and the rows.
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
  void drop_excluded(std::size_t query);
  void evaluate_list(std::size_t query, CodeEvaluator& evaluator);
  // Offers rows[0 .. count) to the query's answers. evaluator: with the query begun.
  void evaluate_rows(std::size_t query, CodeEvaluator& evaluator, const std::uint32_t* rows,
                     std::size_t count);
  // By key, then by id.
  bool is_better(const Answer& left, const Answer& right) const;
  void offer(std::size_t query, Answer answer);
  // The list becomes the rows of the k best in it, found with as few evaluations as will do. It is all there is.
  void settle(std::size_t query, CodeEvaluator& evaluator);
  // Appends rows that are surely among the best `wanted` of the list to `out`, drops those that surely are not, and keeps
  // the others.
  void narrow(std::size_t query, std::size_t wanted, ScoreForm form, std::vector<std::uint32_t>& out);
  void correct_scores(std::size_t query);
  void write_answers(std::size_t query);
  // The list becomes the ids of the query's candidates.
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
  Buffer<Answer> answers_;               // [queries, k] heaps, the worst on top
  std::array<std::mutex, 256> mutexes_;  // of every 256th query
};

}  // namespace nearwise::cpu

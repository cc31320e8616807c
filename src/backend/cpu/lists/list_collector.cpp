#include "backend/cpu/lists/list_collector.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "backend/cpu/kernels/prefetch.h"
#include "backend/cpu/lists/rerank.h"
#include "backend/cpu/rows/row_estimator.h"
#include "backend/cpu/rows/row_evaluator.h"
#include "core/convert.h"
#include "core/distance.h"

namespace nearwise::cpu {
namespace {

constexpr float no_cutoff = std::numeric_limits<float>::quiet_NaN();

}  // namespace

std::size_t ListCollector::bytes_per_query(std::size_t k) {
  return list_capacity(k) * (sizeof(float) + sizeof(std::uint32_t)) + sizeof(State) + k * sizeof(Answer);
}

std::uint64_t ListCollector::scratch_bytes(const ListSearchShape& shape) {
  // One evaluator for full lists, one for finished queries.
  return 2 * CodeEvaluator::bytes(shape.dim, shape.row_type) + RowEvaluator::bytes(shape.dim) +
         RowEstimator::bytes(shape.dim) + Reranker::bytes(shape.dim, shape.candidates) +
         list_capacity(shape.candidates) * (sizeof(float) + 4 * sizeof(std::uint32_t) + sizeof(FoundRow)) +
         258 * shape.dim * sizeof(float);
}

ListCollector::ListCollector(CpuStream& stream, std::span<const Lengths> lengths, const ListSearchArgs& args,
                             const ListNumbers& numbers, const ListBound& bound, ScoreForm form,
                             std::optional<Correction> correction)
    : stream_(stream),
      lengths_(lengths),
      args_(args),
      numbers_(numbers),
      k_(args.candidates),
      capacity_(list_capacity(k_)),
      bound_(bound),
      form_(form),
      correction_(correction),
      scores_(stream.budget(), lengths.size() * capacity_),
      rows_(stream.budget(), lengths.size() * capacity_),
      states_(stream.budget(), lengths.size()),
      answers_(stream.budget(), lengths.size() * k_) {
  std::ranges::fill(states_.span(), State{{}, std::numeric_limits<double>::infinity(), 0, 0});
}

Id ListCollector::id_of(std::uint32_t row) const {
  const ListNumbers::Place place = numbers_.find(row);
  return args_.lists[place.list].ids[place.row];
}

float ListCollector::cutoff(std::size_t query, const Lengths& longest) {
  if (!bound_.holds_for(lengths_[query], longest)) return no_cutoff;
  return cutoff_of(query, longest, std::atomic_ref(states_[query].limit).load(std::memory_order_relaxed),
                   form_);
}

void ListCollector::lower_limit(std::size_t query, double limit) {
  State& state = states_[query];
  if (limit < state.limit) std::atomic_ref(state.limit).store(limit, std::memory_order_relaxed);
}

void ListCollector::limit_score(std::size_t query, const Lengths& longest, double score) {
  const std::lock_guard lock(mutexes_[query % mutexes_.size()]);
  const float above = std::nextafter(static_cast<float>(score), std::numeric_limits<float>::max());
  lower_limit(query, limit_of(query, longest, above, form_));
}

void ListCollector::add(std::size_t query, const Lengths& longest, std::span<const float> scores,
                        std::span<const std::uint32_t> rows, std::uint32_t first, std::uint32_t last) {
  const std::lock_guard lock(mutexes_[query % mutexes_.size()]);
  State& state = states_[query];
  state.longest = longer(state.longest, longest);
  if (args_.denied.may_contain(query, first, last)) return add_allowed(query, scores, rows);
  const List entries = list(query);
  for (std::size_t i = 0; i < scores.size();) {
    if (state.count == capacity_) make_room(query);
    const std::size_t count = std::min(scores.size() - i, capacity_ - state.count);
    std::copy_n(scores.data() + i, count, entries.scores + state.count);
    std::copy_n(rows.data() + i, count, entries.rows + state.count);
    state.count += static_cast<std::uint32_t>(count);
    i += count;
  }
}

void ListCollector::add_allowed(std::size_t query, std::span<const float> scores,
                                std::span<const std::uint32_t> rows) {
  State& state = states_[query];
  const List entries = list(query);
  const DeniedEntries::Table denied(args_.denied, query);
  for (std::size_t i = 0; i < scores.size();) {
    if (state.count == capacity_) make_room(query);
    const std::size_t end = std::min(scores.size(), i + capacity_ - state.count);
    std::uint32_t count = state.count;
    for (; i < end; ++i) {
      entries.scores[count] = scores[i];
      entries.rows[count] = rows[i];
      // Most entries are told by their bit, without a branch.
      const bool is_suspect = denied.may_contain(rows[i]);
      count += is_suspect ? 0 : 1;
      if (is_suspect && !denied.contains(rows[i])) ++count;
    }
    state.count = count;
  }
}

void ListCollector::drop_excluded(std::size_t query) {
  State& state = states_[query];
  const List entries = list(query);
  if (state.count >= k_) {
    const float kth = stream_.candidate_list.kth_score(entries.scores, state.count, k_);
    lower_limit(query, limit_of(query, state.longest, kth, form_));
  }
  const float cutoff = cutoff_of(query, state.longest, state.limit, form_);
  state.count = static_cast<std::uint32_t>(
      stream_.candidate_list.keep_at_most(entries.scores, entries.rows, state.count, cutoff));
}

void ListCollector::make_room(std::size_t query) {
  drop_excluded(query);
  // A list that stays more than 3/4 full would be cleaned up too often.
  if (states_[query].count <= capacity_ / 4 * 3) return;
  CodeEvaluator evaluator(stream_, args_, numbers_);
  evaluate_list(query, evaluator);
}

void ListCollector::evaluate_list(std::size_t query, CodeEvaluator& evaluator) {
  if (states_[query].count == 0) return;
  evaluator.begin(query);
  evaluate_rows(query, evaluator, list(query).rows, states_[query].count);
  states_[query].count = 0;
}

bool ListCollector::is_better(const Answer& left, const Answer& right) const {
  return left.key < right.key || (left.key == right.key && id_of(left.row) < id_of(right.row));
}

void ListCollector::offer(std::size_t query, Answer answer) {
  if (args_.denied.contains(query, answer.row)) return;
  offer_answer(answers_.data() + query * k_, states_[query].answers, k_, answer,
               [&](const Answer& left, const Answer& right) { return is_better(left, right); });
}

void ListCollector::evaluate_rows(std::size_t query, CodeEvaluator& evaluator, const std::uint32_t* rows,
                                  std::size_t count) {
  float keys[CodeEvaluator::batch];
  for (std::size_t begin = 0; begin < count; begin += CodeEvaluator::batch) {
    const std::size_t batch = std::min(CodeEvaluator::batch, count - begin);
    evaluator.evaluate(rows + begin, batch, keys);
    for (std::size_t i = 0; i < batch; ++i) offer(query, {keys[i], rows[begin + i]});
  }
  if (states_[query].answers == k_) lower_limit(query, bound_.limit_from_key(answers_[query * k_].key));
}

void ListCollector::evaluate(std::size_t query, std::uint32_t first_row, std::size_t count) {
  const std::lock_guard lock(mutexes_[query % mutexes_.size()]);
  CodeEvaluator evaluator(stream_, args_, numbers_);
  evaluator.begin(query);
  std::uint32_t rows[CodeEvaluator::batch];
  for (std::size_t i = 0; i < count; i += CodeEvaluator::batch) {
    stream_.context.cancel.check();
    const std::size_t batch = std::min(CodeEvaluator::batch, count - i);
    for (std::size_t j = 0; j < batch; ++j) rows[j] = first_row + static_cast<std::uint32_t>(i + j);
    evaluate_rows(query, evaluator, rows, batch);
  }
}

void ListCollector::estimate(std::size_t query, std::size_t list) {
  const std::lock_guard lock(mutexes_[query % mutexes_.size()]);
  State& state = states_[query];
  const ListView& rows = args_.lists[list];
  const RowsView view(rows.codes, args_.codec.type, rows.rows, args_.codec.dim, args_.codec.code_bytes);
  const RowEstimator estimator(stream_, args_.queries, query, view, args_.metric);
  const RowEvaluator evaluator(stream_, args_.queries, query, view, args_.metric);
  const std::uint32_t number = numbers_.first(list);
  for (std::size_t begin = 0; begin < rows.rows; begin += RowEstimator::batch) {
    const std::size_t batch = std::min(RowEstimator::batch, rows.rows - begin);
    RowEstimator::Batch estimates;
    estimator.estimate(begin, batch, estimates);
    if (estimator.all_exceed(estimates, state.limit)) continue;
    for (std::size_t i = 0; i < batch; ++i) {
      if (estimator.lowest(estimates, i) > state.limit) continue;
      float key;
      evaluator.evaluate(nullptr, begin + i, 1, &key);
      offer(query, {key, number + static_cast<std::uint32_t>(begin + i)});
      if (state.answers == k_) lower_limit(query, bound_.limit_from_key(answers_[query * k_].key));
    }
  }
}

// A vector is certainly among the best if at most `wanted` scores, including its own, are within the cutoff
// that its score implies; it certainly is not if its score exceeds the cutoff that `wanted` others imply.
void ListCollector::narrow(std::size_t query, std::size_t wanted, ScoreForm form,
                           std::vector<std::uint32_t>& out) {
  State& state = states_[query];
  const List entries = list(query);
  if (state.count <= wanted) {
    out.insert(out.end(), entries.rows, entries.rows + state.count);
    state.count = 0;
    return;
  }
  std::vector<float> scores(entries.scores, entries.scores + state.count);
  const auto next = scores.begin() + static_cast<std::ptrdiff_t>(wanted);
  std::nth_element(scores.begin(), next, scores.end());
  const float last_in =
      wanted == 0 ? -std::numeric_limits<float>::infinity() : *std::max_element(scores.begin(), next);
  const float first_out = *next;
  const auto excluded_from = [&](float score) {
    return cutoff_of(query, state.longest, limit_of(query, state.longest, score, form), form);
  };
  const float cutoff = excluded_from(last_in);
  // Any score whose cutoff is below first_out is valid; a larger one saves evaluations.
  float sure = -std::numeric_limits<float>::infinity();
  const float width = excluded_from(first_out) - first_out;
  for (float factor = 1.05F; factor < 8; factor *= 1.5F) {
    const float score = first_out - factor * width;
    if (!(excluded_from(score) < first_out)) continue;
    sure = score;
    break;
  }
  std::uint32_t open = 0;
  for (std::size_t i = 0; i < state.count; ++i) {
    if (entries.scores[i] <= sure) {
      out.push_back(entries.rows[i]);
    } else if (entries.scores[i] <= cutoff) {
      entries.scores[open] = entries.scores[i];
      entries.rows[open++] = entries.rows[i];
    }
  }
  state.count = open;
}

void ListCollector::correct_scores(std::size_t query) {
  const std::size_t dim = args_.codec.dim;
  const List entries = list(query);
  const std::uint32_t count = states_[query].count;
  std::vector<ListNumbers::Place> places(count);
  const auto code_at = [&](const ListNumbers::Place& place) {
    return args_.lists[place.list].codes + place.row * args_.codec.code_bytes;
  };
  for (std::size_t i = 0; i < count; ++i) {
    places[i] = numbers_.find(entries.rows[i]);
    prefetch(reinterpret_cast<std::uintptr_t>(code_at(places[i])), args_.codec.code_bytes);
  }
  std::vector<float> numbers(2 * dim);
  std::vector<double> exact(dim);
  correction_->queries->unpack(query, numbers.data());
  row_to_double(args_.queries, query, exact.data());
  for (std::size_t i = 0; i < dim; ++i)
    numbers[dim + i] = static_cast<float>(args_.centre.empty() ? exact[i] : exact[i] - args_.centre[i]);
  std::vector<float> tables(ProductPanels::table_size(args_.codec));
  correction_->panels->fill_corrections(numbers.data(), numbers.data() + dim, tables);
  for (std::size_t i = 0; i < count; ++i)
    entries.scores[i] += correction_->panels->sum_of(tables, code_at(places[i]));
}

void ListCollector::settle(std::size_t query, CodeEvaluator& evaluator) {
  // Up to this many evaluations cost no more than the correction tables.
  constexpr std::size_t max_evaluations = 12;
  State& state = states_[query];
  std::vector<std::uint32_t> best;
  best.reserve(k_);
  narrow(query, k_, form_, best);
  if (correction_ && state.count > max_evaluations) {
    correct_scores(query);
    narrow(query, k_ - best.size(), ScoreForm::corrected, best);
  }
  evaluate_list(query, evaluator);
  const auto evaluated = answers(query);
  std::ranges::sort(evaluated,
                    [&](const Answer& left, const Answer& right) { return is_better(left, right); });
  for (std::size_t i = 0; best.size() < k_ && i < evaluated.size(); ++i) best.push_back(evaluated[i].row);
  std::ranges::copy(best, list(query).rows);
  state.count = static_cast<std::uint32_t>(best.size());
}

void ListCollector::list_candidates(std::size_t query, CodeEvaluator& evaluator) {
  State& state = states_[query];
  std::uint32_t* const rows = list(query).rows;
  if (state.answers == 0) {
    settle(query, evaluator);
  } else {
    evaluate_list(query, evaluator);
    std::ranges::transform(answers(query), rows, [](const Answer& answer) { return answer.row; });
    state.count = state.answers;
  }
}

void ListCollector::write_answers(std::size_t query) {
  std::vector<FoundRow> found;
  found.reserve(states_[query].answers);
  for (const Answer& answer : answers(query)) found.push_back({answer.key, id_of(answer.row)});
  std::sort(found.begin(), found.end());
  write_found(found, args_, query);
}

void ListCollector::finish(std::size_t first, std::size_t end) {
  CodeEvaluator evaluator(stream_, args_, numbers_);
  const bool reranks = args_.rerank.any();
  for (std::size_t query = first; query < end; ++query) {
    drop_excluded(query);
    if (reranks) {
      list_candidates(query, evaluator);
    } else {
      evaluate_list(query, evaluator);
      write_answers(query);
    }
  }
  if (!reranks) return;
  Reranker reranker(stream_, args_, numbers_, bound_);
  const auto rows = [&](std::size_t query) {
    return query == end ? std::span<const std::uint32_t>()
                        : std::span<const std::uint32_t>(list(query).rows, states_[query].count);
  };
  for (std::size_t query = first; query < end; ++query)
    reranker.write_nearest(query, rows(query), rows(query + 1));
}

}  // namespace nearwise::cpu

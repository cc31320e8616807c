#include "backend/cpu/list_collector.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "backend/cpu/kernels/prefetch.h"
#include "backend/cpu/row_evaluator.h"
#include "core/distance.h"

namespace nearwise::cpu {
namespace {

constexpr float without_meaning = std::numeric_limits<float>::quiet_NaN();

// The number of evaluated answers a query has before it is written, and its rows.
template <typename Better>
void offer_to_heap(Answer* heap, std::uint32_t& count, std::size_t k, const Answer& answer,
                   const Better& better) {
  if (count < k) {
    heap[count++] = answer;
    std::push_heap(heap, heap + count, better);
  } else if (better(answer, heap[0])) {
    std::pop_heap(heap, heap + k, better);
    heap[k - 1] = answer;
    std::push_heap(heap, heap + k, better);
  }
}

// A neighbour as it is reported, and its order.
struct Found {
  float key;
  Id id;
  friend bool operator<(const Found& left, const Found& right) {
    return left.key < right.key || (left.key == right.key && left.id < right.id);
  }
};

void write(std::span<const Found> found, Metric metric, std::span<Id> ids, std::span<float> distances) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool there = i < found.size();
    ids[i] = there ? found[i].id : no_id;
    distances[i] = there ? distance_of_key(metric, found[i].key) : padding_distance(metric);
  }
}

}  // namespace

std::size_t ListCollector::bytes_per_query(std::size_t k) {
  return list_capacity(k) * (sizeof(float) + sizeof(std::uint32_t)) + sizeof(State) + k * sizeof(Answer);
}

std::uint64_t ListCollector::scratch_bytes(const ListSearchShape& shape) {
  return RowEvaluator::bytes(shape.dim) +
         buffer_bytes(RowEvaluator::batch * shape.dim, element_size(shape.row_type)) +
         list_capacity(shape.candidates) * (sizeof(float) + sizeof(std::uint32_t) + sizeof(Found));
}

ListCollector::ListCollector(CpuStream& stream, const PackedRows& queries, const ListSearchArgs& args,
                             const ListNumbers& numbers)
    : stream_(stream),
      queries_(queries),
      args_(args),
      numbers_(numbers),
      k_(args.candidates),
      capacity_(list_capacity(k_)),
      bound_(args.metric, products_of(queries.kernel.base_encoding), queries.dim),
      scores_(stream.budget(), queries.rows * capacity_),
      rows_(stream.budget(), queries.rows * capacity_),
      states_(stream.budget(), queries.rows),
      answers_(stream.budget(), queries.rows * k_) {
  std::ranges::fill(states_.span(), State{{}, std::numeric_limits<double>::infinity(), 0, 0});
}

Id ListCollector::id_of(std::uint32_t row) const {
  const ListNumbers::Place place = numbers_.find(row);
  return args_.lists[place.list].ids[place.row];
}

float ListCollector::cutoff(std::size_t query, const Lengths& longest) {
  if (!ScoreBound::holds_for(queries_.lengths[query], longest)) return without_meaning;
  const std::lock_guard lock(mutexes_[query % mutexes_.size()]);
  return bound_.cutoff(queries_.lengths[query], longest, states_[query].limit);
}

void ListCollector::add(std::size_t query, const Lengths& longest, std::span<const float> scores,
                        std::span<const std::uint32_t> rows) {
  const std::lock_guard lock(mutexes_[query % mutexes_.size()]);
  State& state = states_[query];
  state.longest = longer(state.longest, longest);
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

void ListCollector::drop_excluded(std::size_t query) {
  State& state = states_[query];
  const Lengths& lengths = queries_.lengths[query];
  const List entries = list(query);
  if (state.count >= k_) {
    const float kth = stream_.candidate_list.kth_score(entries.scores, state.count, k_);
    state.limit = std::min(state.limit, bound_.limit_from_score(lengths, state.longest, kth));
  }
  const float cutoff = bound_.cutoff(lengths, state.longest, state.limit);
  state.count = static_cast<std::uint32_t>(
      stream_.candidate_list.keep_at_most(entries.scores, entries.rows, state.count, cutoff));
}

void ListCollector::make_room(std::size_t query) {
  drop_excluded(query);
  // A list that stays more than three quarters full would be cleaned up again and again for little.
  if (states_[query].count > capacity_ / 4 * 3) evaluate_list(query);
}

void ListCollector::evaluate_list(std::size_t query) {
  evaluate_rows(query, list(query).rows, states_[query].count);
  states_[query].count = 0;
}

void ListCollector::offer(std::size_t query, Answer answer) {
  offer_to_heap(answers_.data() + query * k_, states_[query].answers, k_, answer,
                [&](const Answer& left, const Answer& right) {
                  return left.key < right.key ||
                         (left.key == right.key && id_of(left.row) < id_of(right.row));
                });
}

void ListCollector::evaluate_rows(std::size_t query, const std::uint32_t* rows, std::size_t count) {
  const std::size_t row_bytes = args_.codec.dim * element_size(args_.codec.type);
  Buffer<std::byte> decoded(stream_.budget(), RowEvaluator::batch * row_bytes);
  const RowsView view(decoded.data(), args_.codec.type, RowEvaluator::batch, args_.codec.dim, row_bytes);
  const RowEvaluator evaluator(stream_, args_.queries, query, view, args_.metric);
  float keys[RowEvaluator::batch];
  for (std::size_t begin = 0; begin < count; begin += RowEvaluator::batch) {
    const std::size_t batch = std::min(RowEvaluator::batch, count - begin);
    for (std::size_t i = 0; i < batch; ++i) {
      const ListNumbers::Place place = numbers_.find(rows[begin + i]);
      decode_rows(args_.codec, args_.lists[place.list], place.list, place.row, 1,
                  decoded.data() + i * row_bytes);
    }
    evaluator.evaluate(nullptr, 0, batch, keys);
    for (std::size_t i = 0; i < batch; ++i) offer(query, {keys[i], rows[begin + i]});
  }
  State& state = states_[query];
  if (state.answers == k_)
    state.limit = std::min(state.limit, bound_.limit_from_key(answers_[query * k_].key));
}

void ListCollector::evaluate(std::size_t query, std::uint32_t first_row, std::size_t count) {
  const std::lock_guard lock(mutexes_[query % mutexes_.size()]);
  std::uint32_t rows[RowEvaluator::batch];
  for (std::size_t i = 0; i < count; i += RowEvaluator::batch) {
    stream_.context.cancel.check();
    const std::size_t batch = std::min(RowEvaluator::batch, count - i);
    for (std::size_t j = 0; j < batch; ++j) rows[j] = first_row + static_cast<std::uint32_t>(i + j);
    evaluate_rows(query, rows, batch);
  }
}

// A row is surely one of the k best if at most k scores, its own among them, are not beyond the cutoff that its score sets.
// Only the others are evaluated.
std::size_t ListCollector::settle(std::size_t query, std::span<std::uint32_t> out) {
  State& state = states_[query];
  const List entries = list(query);
  if (state.count <= k_) {
    std::copy_n(entries.rows, state.count, out.data());
    return state.count;
  }
  std::vector<float> scores(entries.scores, entries.scores + state.count);
  std::ranges::nth_element(scores, scores.begin() + static_cast<std::ptrdiff_t>(k_));
  const float first_out = scores[k_];  // the least score that k others are not above
  const auto excluded_from = [&](float score) {
    const double limit = bound_.limit_from_score(queries_.lengths[query], state.longest, score);
    return bound_.cutoff(queries_.lengths[query], state.longest, limit);
  };
  // Any score whose cutoff is below first_out will do; a larger one saves evaluations.
  float sure = -std::numeric_limits<float>::infinity();
  const float width = excluded_from(first_out) - first_out;
  for (float factor = 1.25F; factor < 8; factor *= 1.5F) {
    const float score = first_out - factor * width;
    if (!(excluded_from(score) < first_out)) continue;
    sure = score;
    break;
  }
  std::size_t taken = 0;
  std::size_t open = 0;
  for (std::size_t i = 0; i < state.count; ++i) {
    if (entries.scores[i] <= sure)
      out[taken++] = entries.rows[i];
    else
      entries.rows[open++] = entries.rows[i];
  }
  evaluate_rows(query, entries.rows, open);
  const auto evaluated = answers(query);
  std::ranges::sort(evaluated, [&](const Answer& left, const Answer& right) {
    return left.key < right.key || (left.key == right.key && id_of(left.row) < id_of(right.row));
  });
  for (std::size_t i = 0; taken < k_ && i < evaluated.size(); ++i) out[taken++] = evaluated[i].row;
  return taken;
}

void ListCollector::write_reranked(std::size_t query) {
  std::vector<std::uint32_t> rows(k_);
  if (states_[query].answers == 0) {
    rows.resize(settle(query, rows));
  } else {
    evaluate_list(query);
    rows.clear();
    for (const Answer& answer : answers(query)) rows.push_back(answer.row);
  }
  std::ranges::transform(rows, rows.begin(),
                         [&](std::uint32_t row) { return static_cast<std::uint32_t>(id_of(row)); });
  const RowEvaluator evaluator(stream_, args_.queries, query, args_.rows, args_.metric);
  float keys[RowEvaluator::batch];
  std::vector<Found> found;
  found.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); i += RowEvaluator::batch) {
    const std::size_t batch = std::min(RowEvaluator::batch, rows.size() - i);
    evaluator.evaluate(rows.data() + i, 0, batch, keys);
    for (std::size_t j = 0; j < batch; ++j) found.push_back({keys[j], static_cast<Id>(rows[i + j])});
  }
  const std::size_t count = std::min(args_.k, found.size());
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count), found.end());
  write({found.data(), count}, args_.metric, args_.ids.row(query), args_.distances.row(query));
}

void ListCollector::finish(std::size_t query) {
  drop_excluded(query);
  if (args_.rows.rows() != 0) {
    write_reranked(query);
    return;
  }
  evaluate_list(query);
  std::vector<Found> found;
  found.reserve(states_[query].answers);
  for (const Answer& answer : answers(query)) found.push_back({answer.key, id_of(answer.row)});
  std::sort(found.begin(), found.end());
  write(found, args_.metric, args_.ids.row(query), args_.distances.row(query));
}

}  // namespace nearwise::cpu

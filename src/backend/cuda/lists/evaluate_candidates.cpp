#include "backend/cuda/lists/evaluate_candidates.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "backend/cuda/device/host_results.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/lists/list_results.h"
#include "backend/cuda/rows/row_selection.h"
#include "backend/cuda/tuning/exact_search.h"
#include "core/checked.h"

namespace nearwise::gpu {
namespace {

constexpr std::size_t max_tile_queries = 4096;
constexpr std::size_t max_pairs = 1 << 20;
constexpr std::size_t min_pairs = 16;

using Capacity = PairEvaluator::Capacity;

struct PlacedId {
  Id id;
  ListTiles::Place place;
};

std::uint64_t bytes_of(const EvaluationShape& shape, const Capacity& capacity) {
  const std::size_t entries = capacity.queries * shape.length;
  const std::size_t best = capacity.queries * shape.candidates;
  return PairEvaluator::bytes(shape.evaluated, capacity) +
         ListResults::bytes(capacity.queries, shape.candidates, shape.taken) +
         device_bytes(entries, sizeof(float)) + device_bytes(entries, sizeof(Id)) +
         device_bytes(best, sizeof(float)) + device_bytes(best, sizeof(Id)) +
         device_bytes(RowSelection(capacity.queries, shape.length, shape.candidates).workspace_bytes(), 1) +
         buffer_bytes(entries, sizeof(float)) + 2 * buffer_bytes(entries, sizeof(Id)) +
         buffer_bytes(entries, sizeof(ListTiles::Place)) + buffer_bytes(entries, sizeof(std::uint64_t)) +
         buffer_bytes(best, sizeof(float)) + buffer_bytes(best, sizeof(Id)) +
         buffer_bytes(best, sizeof(ListTiles::Place)) + buffer_bytes(shape.length, sizeof(PlacedId)) +
         buffer_bytes(capacity.queries, sizeof(std::uint32_t)) + buffer_bytes(capacity.queries, sizeof(bool));
}

Capacity choose_capacity(const EvaluationShape& shape, std::size_t queries, std::uint64_t bytes) {
  Capacity capacity = {std::min(queries, max_tile_queries), 0};
  const auto pairs_of = [&] {
    return std::min(max_pairs, std::max(min_pairs, capacity.queries * shape.length));
  };
  for (capacity.pairs = pairs_of(); capacity.queries > 1 && bytes_of(shape, capacity) > bytes;
       capacity.pairs = pairs_of())
    capacity.queries = divide_up<std::size_t>(capacity.queries, 2);
  while (capacity.pairs > min_pairs && bytes_of(shape, capacity) > bytes)
    capacity.pairs = std::max(min_pairs, divide_up<std::size_t>(capacity.pairs, 2));
  return capacity;
}

class CandidateEvaluation {
 public:
  CandidateEvaluation(const CudaStream& stream, const ListSearchArgs& args, const ListTiles& tiles,
                      const ListScorer& scorer, const RunningTopK& scores, const EvaluationShape& shape,
                      const Capacity& capacity)
      : stream_(stream),
        args_(args),
        tiles_(tiles),
        scorer_(scorer),
        lists_(scores),
        shape_(shape),
        capacity_(capacity),
        selection_(capacity.queries, shape.length, shape.candidates),
        evaluator_(stream, args.queries, args.metric, shape.evaluated, capacity, list_search_name),
        answers_(stream, args, evaluator_, capacity.queries),
        keys_(stream, capacity.queries * shape.length, list_search_name),
        ids_(stream, capacity.queries * shape.length, list_search_name),
        best_keys_(stream, capacity.queries * shape.candidates, list_search_name),
        best_ids_(stream, capacity.queries * shape.candidates, list_search_name),
        workspace_(stream, selection_.workspace_bytes(), list_search_name),
        host_scores_(stream.budget(), capacity.queries * shape.length),
        host_positions_(stream.budget(), capacity.queries * shape.length),
        host_ids_(stream.budget(), capacity.queries * shape.length),
        places_(stream.budget(), capacity.queries * shape.length),
        slots_(stream.budget(), capacity.queries * shape.length),
        host_best_keys_(stream.budget(), capacity.queries * shape.candidates),
        host_best_ids_(stream.budget(), capacity.queries * shape.candidates),
        best_places_(stream.budget(), answers_.needs_places() ? capacity.queries * shape.candidates : 0),
        placed_(stream.budget(), answers_.needs_places() ? shape.length : 0),
        selected_(stream.budget(), capacity.queries),
        certified_(stream.budget(), capacity.queries) {}
  CandidateEvaluation(const CandidateEvaluation&) = delete;
  CandidateEvaluation& operator=(const CandidateEvaluation&) = delete;

  std::size_t tile_queries() const { return capacity_.queries; }

  // Writes certified results; appends the other queries to `uncertified`.
  void run(std::size_t first, std::size_t count, std::vector<std::uint32_t>& uncertified) {
    stream_.context.cancel.check();
    first_ = first;
    fetch_lists(count);
    for (std::size_t i = 0; i < count; ++i) count_selected(i);
    evaluator_.load_queries(first, count);
    evaluate(count);
    select(count);
    for (std::size_t i = 0; i < count; ++i) {
      certified_[i] = certified_[i] || is_certified_by_keys(i);
      if (!certified_[i]) uncertified.push_back(static_cast<std::uint32_t>(first + i));
    }
    const std::size_t best = count * shape_.candidates;
    if (answers_.needs_places()) find_places(count);
    answers_.write(first, host_best_keys_.span().first(best), host_best_ids_.span().first(best),
                   best_places_.span(), certified_.span().first(count));
  }

 private:
  std::span<const float> scores(std::size_t i) const {
    return host_scores_.span().subspan(i * shape_.length, shape_.length);
  }

  void fetch_lists(std::size_t count) {
    const std::size_t entries = count * shape_.length;
    HostResults copies(stream_);
    copies.add(lists_.values(first_), host_scores_.span().first(entries), list_search_name);
    copies.add(lists_.rows(first_), host_positions_.span().first(entries), list_search_name);
    copies.finish(list_search_name);
  }

  // Determines how many list entries may be candidates, and whether all such rows are in the list. Rows not
  // in the list have scores no better than its last.
  void count_selected(std::size_t i) {
    const std::size_t query = first_ + i;
    const std::size_t rows = tiles_.rows_of(query);
    selected_[i] = 0;
    certified_[i] = rows == 0;
    if (rows == 0 || !scorer_.holds_for(query)) return;
    const std::size_t listed = std::min(shape_.length, rows);
    float cutoff = std::numeric_limits<float>::max();
    if (listed >= shape_.candidates)
      cutoff = scorer_.cutoff(query, scorer_.limit_from_score(query, scores(i)[shape_.candidates - 1]));
    certified_[i] = rows <= shape_.length || scores(i).back() > cutoff;
    // If scores do not certify the list, the exact keys of all its entries may.
    selected_[i] = static_cast<std::uint32_t>(listed);
    if (certified_[i])
      selected_[i] = static_cast<std::uint32_t>(
          std::upper_bound(scores(i).begin(), scores(i).begin() + static_cast<std::ptrdiff_t>(listed),
                           cutoff) -
          scores(i).begin());
  }

  bool is_certified_by_keys(std::size_t i) const {
    const std::size_t last = (i + 1) * shape_.candidates - 1;
    return selected_[i] > 0 && host_best_ids_[last] != no_id &&
           scores(i).back() > scorer_.cutoff(first_ + i, scorer_.limit_from_key(host_best_keys_[last]));
  }

  // Evaluates the selected entries of all queries; other keys are NaN and ids no_id.
  void evaluate(std::size_t count) {
    const std::size_t entries = count * shape_.length;
    check(cudaMemsetAsync(keys_.data(), 0xFF, entries * sizeof(float), stream_.handle()), list_search_name);
    std::fill_n(host_ids_.data(), entries, no_id);
    std::size_t pairs = 0;
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t slot = i * shape_.length; slot < i * shape_.length + selected_[i]; ++slot) {
        places_[pairs] = tiles_.find(first_ + i, host_positions_[slot]);
        host_ids_[slot] = args_.lists[places_[pairs].list].ids[places_[pairs].row];
        slots_[pairs++] = slot;
      }
    copy_to_device(stream_, std::span<const Id>(host_ids_.data(), entries), ids_.data(), list_search_name);
    evaluator_.evaluate(args_.codec.type, {slots_.data(), pairs}, shape_.length, keys_.data(),
                        [&](std::size_t pair, std::byte* out) { write_list_row(args_, places_[pair], out); });
  }

  // The places of the best, among those of all evaluated entries of the query.
  void find_places(std::size_t count) {
    std::size_t pair = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<PlacedId> placed = placed_.span().first(selected_[i]);
      for (PlacedId& entry : placed) {
        entry = {host_ids_[slots_[pair]], places_[pair]};
        ++pair;
      }
      std::ranges::sort(placed, {}, &PlacedId::id);
      for (std::size_t slot = i * shape_.candidates; slot < (i + 1) * shape_.candidates; ++slot)
        if (host_best_ids_[slot] != no_id)
          best_places_[slot] =
              std::ranges::lower_bound(placed, host_best_ids_[slot], {}, &PlacedId::id)->place;
    }
  }

  void select(std::size_t count) {
    selection_.run(stream_.handle(), Ties::wide_ids,
                   {.values = keys_.data(),
                    .value_stride = shape_.length,
                    .wide_ids = ids_.data(),
                    .id_stride = shape_.length,
                    .rows = count,
                    .cols = static_cast<std::uint32_t>(shape_.length),
                    .k = static_cast<std::uint32_t>(shape_.candidates),
                    .best = best_keys_.data(),
                    .ids = best_ids_.data(),
                    .best_stride = shape_.candidates},
                   workspace_.data());
    const std::size_t best = count * shape_.candidates;
    HostResults copies(stream_);
    copies.add(best_keys_.data(), host_best_keys_.span().first(best), list_search_name);
    copies.add(best_ids_.data(), host_best_ids_.span().first(best), list_search_name);
    copies.finish(list_search_name);
  }

  const CudaStream& stream_;
  const ListSearchArgs& args_;
  const ListTiles& tiles_;
  const ListScorer& scorer_;
  const RunningTopK& lists_;
  const EvaluationShape shape_;
  const Capacity capacity_;
  const RowSelection selection_;
  std::size_t first_ = 0;  // first query of the tile
  PairEvaluator evaluator_;
  ListResults answers_;
  DeviceBuffer<float> keys_;  // [queries, length]
  DeviceBuffer<Id> ids_;
  DeviceBuffer<float> best_keys_;  // [queries, candidates]
  DeviceBuffer<Id> best_ids_;
  DeviceBuffer<std::byte> workspace_;
  Buffer<float> host_scores_;
  Buffer<Id> host_positions_;
  Buffer<Id> host_ids_;
  Buffer<ListTiles::Place> places_;
  Buffer<std::uint64_t> slots_;
  Buffer<float> host_best_keys_;
  Buffer<Id> host_best_ids_;
  Buffer<ListTiles::Place> best_places_;  // [queries, candidates]; empty if nobody needs them
  Buffer<PlacedId> placed_;               // [length]
  Buffer<std::uint32_t> selected_;        // list entries to evaluate
  Buffer<bool> certified_;                // whether the best are proven to be the candidates
};

}  // namespace

std::uint64_t evaluate_candidates_bytes(const EvaluationShape& shape) {
  return std::max(bytes_of(shape, {1, min_pairs}), exhaustive_lists_bytes(shape));
}

void evaluate_candidates(const CudaStream& stream, const ListSearchArgs& args, const ListTiles& tiles,
                         const ListScorer& scorer, const RunningTopK& scores) {
  const EvaluationShape shape = {evaluated_shape(args), scores.length(), args.candidates,
                                 std::min(args.k, args.candidates)};
  const std::size_t queries = args.queries.rows();
  std::vector<std::uint32_t> uncertified;
  {
    const auto evaluation = with_working_memory(
        stream, bytes_of(shape, {1, min_pairs}), tuning::target_working_bytes, 0, [&](std::uint64_t bytes) {
          return std::make_unique<CandidateEvaluation>(stream, args, tiles, scorer, scores, shape,
                                                       choose_capacity(shape, queries, bytes));
        });
    for (std::size_t first = 0; first < queries; first += evaluation->tile_queries())
      evaluation->run(first, std::min(evaluation->tile_queries(), queries - first), uncertified);
  }
  search_lists_exhaustively(stream, args, tiles, shape, uncertified);
}

}  // namespace nearwise::gpu

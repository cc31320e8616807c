// Exhaustive search in the probed lists: evaluates every row in batches and merges it into the best so far,
// by distance, then id.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "backend/cuda/device/host_results.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/lists/evaluate_candidates.h"
#include "backend/cuda/lists/list_results.h"
#include "backend/cuda/rows/row_selection.h"
#include "backend/cuda/tuning/exact_search.h"
#include "core/checked.h"

namespace nearwise::gpu {
namespace {

constexpr std::size_t max_pairs = 65536;
constexpr std::size_t min_pairs = 64;

std::uint64_t bytes_of(const EvaluationShape& shape, std::size_t pairs) {
  const std::size_t columns = shape.candidates + pairs;
  return PairEvaluator::bytes(shape.evaluated, {1, pairs}) +
         ListResults::bytes(1, shape.candidates, shape.taken) + device_bytes(columns, sizeof(float)) +
         device_bytes(columns, sizeof(Id)) + device_bytes(shape.candidates, sizeof(float)) +
         device_bytes(shape.candidates, sizeof(Id)) +
         device_bytes(RowSelection(1, columns, shape.candidates).workspace_bytes(), 1) +
         buffer_bytes(pairs, sizeof(Id)) + buffer_bytes(pairs, sizeof(ListTiles::Place)) +
         buffer_bytes(pairs, sizeof(std::uint64_t)) + buffer_bytes(shape.candidates, sizeof(float)) +
         buffer_bytes(shape.candidates, sizeof(Id)) +
         buffer_bytes(shape.candidates, sizeof(ListTiles::Place)) +
         shape.candidates * sizeof(std::pair<Id, std::size_t>);
}

class ExhaustiveListSearch {
 public:
  ExhaustiveListSearch(const CudaStream& stream, const ListSearchArgs& args, const ListTiles& tiles,
                       const EvaluationShape& shape, std::size_t pairs)
      : stream_(stream),
        args_(args),
        tiles_(tiles),
        shape_(shape),
        max_pairs_(pairs),
        selection_(1, shape.candidates + pairs, shape.candidates),
        evaluator_(stream, args.queries, args.metric, shape.evaluated, {1, pairs}, list_search_name),
        answers_(stream, args, evaluator_, 1),
        keys_(stream, shape.candidates + pairs, list_search_name),
        ids_(stream, shape.candidates + pairs, list_search_name),
        best_keys_(stream, shape.candidates, list_search_name),
        best_ids_(stream, shape.candidates, list_search_name),
        workspace_(stream, selection_.workspace_bytes(), list_search_name),
        host_ids_(stream.budget(), pairs),
        places_(stream.budget(), pairs),
        slots_(stream.budget(), pairs),
        host_best_keys_(stream.budget(), shape.candidates),
        host_best_ids_(stream.budget(), shape.candidates),
        best_places_(stream.budget(), answers_.needs_places() ? shape.candidates : 0) {}
  ExhaustiveListSearch(const ExhaustiveListSearch&) = delete;
  ExhaustiveListSearch& operator=(const ExhaustiveListSearch&) = delete;

  void run(std::size_t query) {
    evaluator_.load_queries(query, 1);
    clear(best_keys_.data(), shape_.candidates * sizeof(float));
    clear(best_ids_.data(), shape_.candidates * sizeof(Id));
    pairs_ = 0;
    for (const ListTile& tile : tiles_.tiles())
      tiles_.for_each_piece(query, tile, [&](std::size_t number, std::size_t) {
        const ListPiece& piece = tiles_.pieces(tile)[number];
        for (std::size_t i = 0; i < piece.rows; ++i) {
          places_[pairs_] = {piece.list, piece.first + i};
          host_ids_[pairs_] = args_.lists[piece.list].ids[piece.first + i];
          slots_[pairs_] = shape_.candidates + pairs_;
          if (++pairs_ == max_pairs_) merge();
        }
      });
    merge();
    HostResults copies(stream_);
    copies.add(best_keys_.data(), host_best_keys_.span(), list_search_name);
    copies.add(best_ids_.data(), host_best_ids_.span(), list_search_name);
    copies.finish(list_search_name);
    constexpr bool certified = true;
    if (answers_.needs_places()) find_places(query);
    answers_.write(query, host_best_keys_.span(), host_best_ids_.span(), best_places_.span(),
                   {&certified, 1});
  }

 private:
  // Empty entries sort after all others.
  void clear(void* memory, std::size_t bytes) {
    static_assert(no_id == -1);
    check(cudaMemsetAsync(memory, 0xFF, bytes, stream_.handle()), list_search_name);
  }

  template <typename T>
  void copy_best(const DeviceBuffer<T>& from, DeviceBuffer<T>& to) {
    check(cudaMemcpyAsync(to.data(), from.data(), shape_.candidates * sizeof(T), cudaMemcpyDeviceToDevice,
                          stream_.handle()),
          list_search_name);
  }

  // The places of the best ids, by one more pass over the query's lists.
  void find_places(std::size_t query) {
    std::vector<std::pair<Id, std::size_t>> best;
    for (std::size_t i = 0; i < shape_.candidates; ++i)
      if (host_best_ids_[i] != no_id) best.emplace_back(host_best_ids_[i], i);
    std::ranges::sort(best);
    for (const ListTile& tile : tiles_.tiles())
      tiles_.for_each_piece(query, tile, [&](std::size_t number, std::size_t) {
        const ListPiece& piece = tiles_.pieces(tile)[number];
        for (std::size_t i = piece.first; i < piece.first + piece.rows; ++i) {
          const Id id = args_.lists[piece.list].ids[i];
          const auto found = std::ranges::lower_bound(best, id, {}, &std::pair<Id, std::size_t>::first);
          if (found != best.end() && found->first == id) best_places_[found->second] = {piece.list, i};
        }
      });
  }

  // Merges the collected pairs into the best so far.
  void merge() {
    if (pairs_ == 0) return;
    stream_.context.cancel.check();
    clear(keys_.data(), keys_.size() * sizeof(float));
    clear(ids_.data(), ids_.size() * sizeof(Id));
    copy_best(best_keys_, keys_);
    copy_best(best_ids_, ids_);
    copy_to_device(stream_, std::span<const Id>(host_ids_.data(), pairs_), ids_.data() + shape_.candidates,
                   list_search_name);
    evaluator_.evaluate(args_.codec.type, {slots_.data(), pairs_}, keys_.size(), keys_.data(),
                        [&](std::size_t pair, std::byte* out) { write_list_row(args_, places_[pair], out); });
    selection_.run(stream_.handle(), Ties::wide_ids,
                   {.values = keys_.data(),
                    .value_stride = keys_.size(),
                    .wide_ids = ids_.data(),
                    .id_stride = keys_.size(),
                    .rows = 1,
                    .cols = static_cast<std::uint32_t>(keys_.size()),
                    .k = static_cast<std::uint32_t>(shape_.candidates),
                    .best = best_keys_.data(),
                    .ids = best_ids_.data(),
                    .best_stride = shape_.candidates},
                   workspace_.data());
    pairs_ = 0;
  }

  const CudaStream& stream_;
  const ListSearchArgs& args_;
  const ListTiles& tiles_;
  const EvaluationShape shape_;
  const std::size_t max_pairs_;
  const RowSelection selection_;
  PairEvaluator evaluator_;
  ListResults answers_;
  DeviceBuffer<float> keys_;  // [candidates + pairs] best so far, then new pairs
  DeviceBuffer<Id> ids_;
  DeviceBuffer<float> best_keys_;  // [candidates]
  DeviceBuffer<Id> best_ids_;
  DeviceBuffer<std::byte> workspace_;
  Buffer<Id> host_ids_;
  Buffer<ListTiles::Place> places_;
  Buffer<std::uint64_t> slots_;
  Buffer<float> host_best_keys_;
  Buffer<Id> host_best_ids_;
  Buffer<ListTiles::Place> best_places_;  // [candidates]; empty if nobody needs them
  std::size_t pairs_ = 0;
};

}  // namespace

std::uint64_t exhaustive_lists_bytes(const EvaluationShape& shape) { return bytes_of(shape, min_pairs); }

void search_lists_exhaustively(const CudaStream& stream, const ListSearchArgs& args, const ListTiles& tiles,
                               const EvaluationShape& shape, std::span<const std::uint32_t> queries) {
  if (queries.empty()) return;
  std::size_t rows = 0;
  for (const std::uint32_t query : queries) rows = std::max(rows, tiles.rows_of(query));
  const auto search = with_working_memory(
      stream, bytes_of(shape, min_pairs), tuning::target_working_bytes, 0, [&](std::uint64_t bytes) {
        std::size_t pairs = std::clamp(rows, min_pairs, max_pairs);
        while (pairs > min_pairs && bytes_of(shape, pairs) > bytes) pairs = std::max(min_pairs, pairs / 2);
        return std::make_unique<ExhaustiveListSearch>(stream, args, tiles, shape, pairs);
      });
  for (const std::uint32_t query : queries) search->run(query);
}

}  // namespace nearwise::gpu

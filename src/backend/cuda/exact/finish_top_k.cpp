// Evaluates the rows of the best scores and returns the k best of them if the scores certify that no other
// row can be among them. For the other queries all rows are evaluated.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/host_results.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/exact/exhaustive_search.h"
#include "backend/cuda/exact/write_results.h"
#include "backend/cuda/kernels/rows/evaluate_rows.h"
#include "backend/cuda/kernels/rows/widen_rows.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/row_selection.h"
#include "backend/cuda/rows/top_k_collector.h"
#include "backend/cuda/tuning/exact_search.h"
#include "core/checked.h"

namespace nearwise::gpu {
namespace {

constexpr std::size_t max_tile_queries = 4096;
constexpr std::size_t max_pairs = 1 << 20;
constexpr std::size_t min_pairs = 16;

struct Shape {
  std::size_t dim = 0;
  std::size_t query_bytes = 0;  // of one query
  std::size_t base_bytes = 0;
  std::size_t k = 0;
  std::size_t length = 0;  // of the score lists
};

struct Tiling {
  std::size_t queries = 0;
  std::size_t pairs = 0;  // evaluated per launch
};

std::uint64_t bytes_of(const Shape& shape, const Tiling& tiling) {
  const std::size_t entries = tiling.queries * shape.length;
  const std::size_t results = tiling.queries * shape.k;
  const std::uint64_t on_device =
      device_bytes(tiling.queries, shape.query_bytes) +
      device_bytes(tiling.queries * shape.dim, sizeof(float)) + device_bytes(tiling.pairs, shape.base_bytes) +
      device_bytes(tiling.pairs, sizeof(std::uint64_t)) + device_bytes(tiling.pairs, sizeof(std::uint32_t)) +
      device_bytes(entries, sizeof(float)) + device_bytes(results, sizeof(float)) +
      device_bytes(results, sizeof(Id)) +
      device_bytes(RowSelection(tiling.queries, shape.length, shape.k).workspace_bytes(), 1);
  const std::uint64_t on_host =
      buffer_bytes(entries, sizeof(float)) + buffer_bytes(entries, sizeof(Id)) +
      buffer_bytes(results, sizeof(float)) + buffer_bytes(results, sizeof(Id)) +
      buffer_bytes(tiling.pairs, shape.base_bytes) + buffer_bytes(tiling.pairs, sizeof(std::uint64_t)) +
      buffer_bytes(tiling.pairs, sizeof(std::uint32_t)) +
      buffer_bytes(tiling.queries, sizeof(std::uint32_t)) + buffer_bytes(tiling.queries, sizeof(bool));
  return on_device + on_host;
}

Tiling choose_tiling(const Shape& shape, std::size_t queries, std::uint64_t bytes) {
  Tiling tiling = {std::min(queries, max_tile_queries), 0};
  const auto pairs_of = [&] {
    return std::min(max_pairs, std::max(min_pairs, tiling.queries * shape.length));
  };
  for (tiling.pairs = pairs_of(); tiling.queries > 1 && bytes_of(shape, tiling) > bytes;
       tiling.pairs = pairs_of())
    tiling.queries = divide_up<std::size_t>(tiling.queries, 2);
  while (tiling.pairs > min_pairs && bytes_of(shape, tiling) > bytes)
    tiling.pairs = std::max(min_pairs, divide_up<std::size_t>(tiling.pairs, 2));
  return tiling;
}

class TopKFinisher {
 public:
  TopKFinisher(const CudaStream& stream, const TopKCollector& top_k, const Shape& shape, const Tiling& tiling)
      : stream_(stream),
        top_k_(top_k),
        shape_(shape),
        tiling_(tiling),
        selection_(tiling.queries, shape.length, shape.k),
        raw_queries_(stream, tiling.queries * shape.query_bytes, exact_search),
        queries_(stream, tiling.queries * shape.dim, exact_search),
        rows_(stream, base_on_host() ? tiling.pairs * shape.base_bytes : 0, exact_search),
        slots_(stream, tiling.pairs, exact_search),
        row_indices_(stream, base_on_host() ? 0 : tiling.pairs, exact_search),
        keys_(stream, tiling.queries * shape.length, exact_search),
        best_keys_(stream, tiling.queries * shape.k, exact_search),
        best_rows_(stream, tiling.queries * shape.k, exact_search),
        workspace_(stream, selection_.workspace_bytes(), exact_search),
        host_scores_(stream.budget(), tiling.queries * shape.length),
        host_list_rows_(stream.budget(), tiling.queries * shape.length),
        host_best_keys_(stream.budget(), tiling.queries * shape.k),
        host_best_rows_(stream.budget(), tiling.queries * shape.k),
        host_rows_(stream.budget(), base_on_host() ? tiling.pairs * shape.base_bytes : 0),
        host_slots_(stream.budget(), tiling.pairs),
        host_row_indices_(stream.budget(), tiling.pairs),
        candidates_(stream.budget(), tiling.queries),
        certified_(stream.budget(), tiling.queries) {}

  std::size_t tile_queries() const { return tiling_.queries; }

  // Writes certified results; appends the other queries to `uncertified`.
  void run(const FinishTopKArgs& args, std::size_t first, std::size_t count,
           std::vector<std::uint32_t>& uncertified) {
    stream_.context.cancel.check();
    first_ = first;
    fetch_lists(count);
    for (std::size_t i = 0; i < count; ++i) count_candidates(i);
    copy_rows_to_device(stream_, top_k_.query_rows.slice(first, count), raw_queries_.data());
    launch_widen_rows(stream_.handle(), top_k_.query_rows.type(), raw_queries_.data(), count, shape_.dim,
                      queries_.data());
    evaluate(count);
    select(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto keys = host_best_keys_.span().subspan(i * shape_.k, shape_.k);
      const auto rows = host_best_rows_.span().subspan(i * shape_.k, shape_.k);
      if (certified_[i] || is_certified_by_keys(i, keys, rows))
        write_results(args, top_k_.metric, first + i, keys, rows);
      else
        uncertified.push_back(static_cast<std::uint32_t>(first + i));
    }
  }

 private:
  bool base_on_host() const { return top_k_.base.place().kind == DeviceKind::cpu; }
  const Lengths& lengths(std::size_t i) const { return top_k_.queries.lengths[first_ + i]; }
  std::span<const float> scores(std::size_t i) const {
    return host_scores_.span().subspan(i * shape_.length, shape_.length);
  }

  void fetch_lists(std::size_t count) {
    const std::size_t entries = count * shape_.length;
    HostResults results(stream_);
    results.add(top_k_.scores.values(first_), host_scores_.span().first(entries), exact_search);
    results.add(top_k_.scores.rows(first_), host_list_rows_.span().first(entries), exact_search);
    results.finish(exact_search);
  }

  // Determines how many list entries may be among the k best, and whether all such rows are in the list. Rows
  // not in the list have scores no better than its last.
  void count_candidates(std::size_t i) {
    candidates_[i] = 0;
    certified_[i] = false;
    if (!ScoreBound::holds_for(lengths(i), top_k_.longest)) return;
    const std::size_t listed = std::min(shape_.length, top_k_.scanned_rows);
    const bool lists_all_rows = top_k_.scanned_rows <= shape_.length;
    float cutoff = std::numeric_limits<float>::max();
    if (listed >= shape_.k)
      cutoff =
          cutoff_of(i, top_k_.bound.limit_from_score(lengths(i), top_k_.longest, scores(i)[shape_.k - 1]));
    certified_[i] = lists_all_rows || scores(i).back() > cutoff;
    // If scores do not certify the list, the exact keys of all its entries may.
    candidates_[i] = static_cast<std::uint32_t>(listed);
    if (certified_[i])
      candidates_[i] = static_cast<std::uint32_t>(
          std::upper_bound(scores(i).begin(), scores(i).begin() + static_cast<std::ptrdiff_t>(listed),
                           cutoff) -
          scores(i).begin());
  }

  bool is_certified_by_keys(std::size_t i, std::span<const float> keys, std::span<const Id> rows) const {
    return candidates_[i] > 0 && rows.back() != no_id &&
           scores(i).back() > cutoff_of(i, top_k_.bound.limit_from_key(keys.back()));
  }

  float cutoff_of(std::size_t i, double limit) const {
    return top_k_.bound.cutoff(lengths(i), top_k_.longest, limit);
  }

  // Evaluates the candidates of all queries; other keys are NaN.
  void evaluate(std::size_t count) {
    check(cudaMemsetAsync(keys_.data(), 0xFF, count * shape_.length * sizeof(float), stream_.handle()),
          exact_search);
    std::size_t pairs = 0;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t entry = 0; entry < candidates_[i]; ++entry) {
        const std::size_t slot = i * shape_.length + entry;
        host_slots_[pairs] = slot;
        host_row_indices_[pairs] = static_cast<std::uint32_t>(host_list_rows_[slot]);
        if (++pairs == tiling_.pairs) evaluate_pairs(std::exchange(pairs, 0));
      }
    }
    evaluate_pairs(pairs);
  }

  void evaluate_pairs(std::size_t pairs) {
    if (pairs == 0) return;
    const bool gather = base_on_host();
    copy_to_device(stream_, std::span<const std::uint64_t>(host_slots_.data(), pairs), slots_.data(),
                   exact_search);
    if (gather) {
      gather_rows(pairs);
      copy_to_device(stream_, std::span<const std::byte>(host_rows_.data(), pairs * shape_.base_bytes),
                     rows_.data(), exact_search);
    } else {
      copy_to_device(stream_, std::span<const std::uint32_t>(host_row_indices_.data(), pairs),
                     row_indices_.data(), exact_search);
    }
    launch_evaluate_rows(stream_.handle(), top_k_.base.type(),
                         {.queries = queries_.data(),
                          .rows = gather ? rows_.data() : top_k_.base.data(),
                          .stride_bytes = gather ? shape_.base_bytes : top_k_.base.stride_bytes(),
                          .dim = static_cast<std::uint32_t>(shape_.dim),
                          .metric = top_k_.metric,
                          .pairs = pairs,
                          .columns = shape_.length,
                          .slots = slots_.data(),
                          .row_indices = gather ? nullptr : row_indices_.data(),
                          .keys = keys_.data()});
  }

  void gather_rows(std::size_t pairs) {
    constexpr std::size_t task_pairs = 256;
    stream_.context.threads->for_each(divide_up(pairs, task_pairs), [&](std::size_t task) {
      for (std::size_t pair = task * task_pairs; pair < std::min(pairs, (task + 1) * task_pairs); ++pair)
        std::memcpy(host_rows_.data() + pair * shape_.base_bytes, top_k_.base.row(host_row_indices_[pair]),
                    shape_.base_bytes);
    });
  }

  // Lists are ordered by score: ties are broken by row.
  void select(std::size_t count) {
    selection_.run(stream_.handle(), Ties::wide_ids,
                   {.values = keys_.data(),
                    .value_stride = shape_.length,
                    .wide_ids = top_k_.scores.rows(first_),
                    .id_stride = shape_.length,
                    .rows = count,
                    .cols = static_cast<std::uint32_t>(shape_.length),
                    .k = static_cast<std::uint32_t>(shape_.k),
                    .best = best_keys_.data(),
                    .ids = best_rows_.data(),
                    .best_stride = shape_.k},
                   workspace_.data());
    const std::size_t entries = count * shape_.k;
    HostResults results(stream_);
    results.add(best_keys_.data(), host_best_keys_.span().first(entries), exact_search);
    results.add(best_rows_.data(), host_best_rows_.span().first(entries), exact_search);
    results.finish(exact_search);
  }

  const CudaStream& stream_;
  const TopKCollector& top_k_;
  const Shape shape_;
  const Tiling tiling_;
  const RowSelection selection_;
  std::size_t first_ = 0;  // first query of the tile
  DeviceBuffer<std::byte> raw_queries_;
  DeviceBuffer<float> queries_;
  DeviceBuffer<std::byte> rows_;  // gathered from a host base
  DeviceBuffer<std::uint64_t> slots_;
  DeviceBuffer<std::uint32_t> row_indices_;
  DeviceBuffer<float> keys_;       // [queries, length]
  DeviceBuffer<float> best_keys_;  // [queries, k]
  DeviceBuffer<Id> best_rows_;
  DeviceBuffer<std::byte> workspace_;
  Buffer<float> host_scores_;
  Buffer<Id> host_list_rows_;
  Buffer<float> host_best_keys_;
  Buffer<Id> host_best_rows_;
  Buffer<std::byte> host_rows_;
  Buffer<std::uint64_t> host_slots_;
  Buffer<std::uint32_t> host_row_indices_;
  Buffer<std::uint32_t> candidates_;  // list entries to evaluate
  Buffer<bool> certified_;            // by scores alone
};

}  // namespace

std::uint64_t finishing_bytes(const KnnCostsArgs& args, Encoding encoding) {
  return std::max(exhaustive_search_bytes(args), bytes_of({args.dim, args.dim * element_size(args.query_type),
                                                           args.dim * element_size(args.base_type), args.k,
                                                           TopKCollector::list_length(args.k, encoding)},
                                                          {1, min_pairs}));
}

void finish_top_k(Stream& stream, const FinishTopKArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  auto& top_k = static_cast<TopKCollector&>(args.found);
  top_k.tile.reset();
  const Shape shape = {top_k.base.dim(), top_k.base.dim() * element_size(top_k.query_rows.type()),
                       top_k.base.dim() * element_size(top_k.base.type()), top_k.k, top_k.scores.length()};
  const std::size_t queries = top_k.queries.rows;
  std::vector<std::uint32_t> uncertified;
  {
    TopKFinisher finisher = with_working_memory(
        cuda, bytes_of(shape, {1, min_pairs}), tuning::target_working_bytes, 0, [&](std::uint64_t bytes) {
          return TopKFinisher(cuda, top_k, shape, choose_tiling(shape, queries, bytes));
        });
    for (std::size_t first = 0; first < queries; first += finisher.tile_queries())
      finisher.run(args, first, std::min(finisher.tile_queries(), queries - first), uncertified);
  }
  search_exhaustively(cuda, args, top_k, uncertified);
}

}  // namespace nearwise::gpu

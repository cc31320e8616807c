// The rows of the best scores are evaluated as they are reported, and the k best of them are the answer - where the
// scores prove that no other row can be. For other queries all rows are evaluated.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/exact/answer_writer.h"
#include "backend/cuda/exact/evaluate_all.h"
#include "backend/cuda/kernels/rows/evaluate_rows.h"
#include "backend/cuda/kernels/rows/widen_rows.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/row_selection.h"
#include "backend/cuda/rows/top_k.h"
#include "backend/cuda/tuning/exact_search.h"
#include "core/checked.h"

namespace nearwise::gpu {
namespace {

constexpr std::size_t most_tile_queries = 4096;
constexpr std::size_t most_pairs = 1 << 20;
constexpr std::size_t least_pairs = 16;

struct Shape {
  std::size_t dim = 0;
  std::size_t query_bytes = 0;  // of a row
  std::size_t base_bytes = 0;
  std::size_t k = 0;
  std::size_t length = 0;  // of the lists of scores
};

struct Tiling {
  std::size_t queries = 0;
  std::size_t pairs = 0;  // evaluated at a time
};

std::uint64_t bytes_of(const Shape& shape, const Tiling& tiling) {
  const std::size_t entries = tiling.queries * shape.length;
  const std::size_t answers = tiling.queries * shape.k;
  const std::uint64_t on_device =
      device_bytes(tiling.queries, shape.query_bytes) +
      device_bytes(tiling.queries * shape.dim, sizeof(float)) + device_bytes(tiling.pairs, shape.base_bytes) +
      device_bytes(tiling.pairs, sizeof(std::uint64_t)) + device_bytes(tiling.pairs, sizeof(std::uint32_t)) +
      device_bytes(entries, sizeof(float)) + device_bytes(answers, sizeof(float)) +
      device_bytes(answers, sizeof(Id)) +
      device_bytes(RowSelection(tiling.queries, shape.length, shape.k).workspace_bytes(), 1);
  const std::uint64_t on_host =
      buffer_bytes(entries, sizeof(float)) + buffer_bytes(entries, sizeof(Id)) +
      buffer_bytes(answers, sizeof(float)) + buffer_bytes(answers, sizeof(Id)) +
      buffer_bytes(tiling.pairs, shape.base_bytes) + buffer_bytes(tiling.pairs, sizeof(std::uint64_t)) +
      buffer_bytes(tiling.pairs, sizeof(std::uint32_t)) +
      buffer_bytes(tiling.queries, sizeof(std::uint32_t)) + buffer_bytes(tiling.queries, sizeof(bool));
  return on_device + on_host;
}

Tiling choose_tiling(const Shape& shape, std::size_t queries, std::uint64_t bytes) {
  Tiling tiling = {std::min(queries, most_tile_queries), 0};
  const auto pairs_of = [&] {
    return std::min(most_pairs, std::max(least_pairs, tiling.queries * shape.length));
  };
  for (tiling.pairs = pairs_of(); tiling.queries > 1 && bytes_of(shape, tiling) > bytes;
       tiling.pairs = pairs_of())
    tiling.queries = divide_up<std::size_t>(tiling.queries, 2);
  while (tiling.pairs > least_pairs && bytes_of(shape, tiling) > bytes)
    tiling.pairs = std::max(least_pairs, divide_up<std::size_t>(tiling.pairs, 2));
  return tiling;
}

class Finish {
 public:
  Finish(const CudaStream& stream, const TopK& found, const Shape& shape, const Tiling& tiling)
      : stream_(stream),
        found_(found),
        shape_(shape),
        tiling_(tiling),
        selection_(tiling.queries, shape.length, shape.k),
        raw_queries_(stream, tiling.queries * shape.query_bytes, exact_search),
        queries_(stream, tiling.queries * shape.dim, exact_search),
        rows_(stream, base_on_host() ? tiling.pairs * shape.base_bytes : 0, exact_search),
        slots_(stream, tiling.pairs, exact_search),
        row_numbers_(stream, base_on_host() ? 0 : tiling.pairs, exact_search),
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
        host_row_numbers_(stream.budget(), tiling.pairs),
        chances_(stream.budget(), tiling.queries),
        proven_(stream.budget(), tiling.queries) {}

  std::size_t tile_queries() const { return tiling_.queries; }

  // Writes the answers that are certain; the other queries are appended to `open`.
  void run(const FinishTopKArgs& args, std::size_t first, std::size_t count,
           std::vector<std::uint32_t>& open) {
    stream_.context.cancel.check();
    first_ = first;
    fetch_lists(count);
    for (std::size_t i = 0; i < count; ++i) judge_scores(i);
    copy_rows_to_device(stream_, found_.query_rows.slice(first, count), raw_queries_.data());
    launch_widen_rows(stream_.handle(), found_.query_rows.type(), raw_queries_.data(), count, shape_.dim,
                      queries_.data());
    evaluate(count);
    select(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto keys = host_best_keys_.span().subspan(i * shape_.k, shape_.k);
      const auto rows = host_best_rows_.span().subspan(i * shape_.k, shape_.k);
      if (proven_[i] || proven_by_keys(i, keys, rows))
        write_answers(args, found_.metric, first + i, keys, rows);
      else
        open.push_back(static_cast<std::uint32_t>(first + i));
    }
  }

 private:
  bool base_on_host() const { return found_.base.place().kind == DeviceKind::cpu; }
  const Lengths& lengths(std::size_t i) const { return found_.queries.lengths[first_ + i]; }
  std::span<const float> scores(std::size_t i) const {
    return host_scores_.span().subspan(i * shape_.length, shape_.length);
  }

  void fetch_lists(std::size_t count) {
    const std::size_t entries = count * shape_.length;
    copy_to_host(stream_, found_.scores.values(first_), host_scores_.span().first(entries), exact_search);
    copy_to_host(stream_, found_.scores.rows(first_), host_list_rows_.span().first(entries), exact_search);
    stream_.synchronize(exact_search);
  }

  // How many of the list have a chance, and whether all that have one are in it. Dropped rows have a score that is no
  // better than the list's last.
  void judge_scores(std::size_t i) {
    chances_[i] = 0;
    proven_[i] = false;
    if (!ScoreBound::holds_for(lengths(i), found_.longest)) return;
    const std::size_t listed = std::min(shape_.length, found_.rows_shown);
    const bool nothing_dropped = found_.rows_shown <= shape_.length;
    float cutoff = std::numeric_limits<float>::max();
    if (listed >= shape_.k)
      cutoff =
          cutoff_of(i, found_.bound.limit_from_score(lengths(i), found_.longest, scores(i)[shape_.k - 1]));
    proven_[i] = nothing_dropped || scores(i).back() > cutoff;
    // Without a proof by scores the exact keys of the whole list may still give one.
    chances_[i] = static_cast<std::uint32_t>(listed);
    if (proven_[i])
      chances_[i] = static_cast<std::uint32_t>(
          std::upper_bound(scores(i).begin(), scores(i).begin() + static_cast<std::ptrdiff_t>(listed),
                           cutoff) -
          scores(i).begin());
  }

  bool proven_by_keys(std::size_t i, std::span<const float> keys, std::span<const Id> rows) const {
    return chances_[i] > 0 && rows.back() != no_id &&
           scores(i).back() > cutoff_of(i, found_.bound.limit_from_key(keys.back()));
  }

  float cutoff_of(std::size_t i, double limit) const {
    return found_.bound.cutoff(lengths(i), found_.longest, limit);
  }

  // Keys of all rows with a chance; NaN elsewhere.
  void evaluate(std::size_t count) {
    check(cudaMemsetAsync(keys_.data(), 0xFF, count * shape_.length * sizeof(float), stream_.handle()),
          exact_search);
    std::size_t pairs = 0;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t entry = 0; entry < chances_[i]; ++entry) {
        const std::size_t slot = i * shape_.length + entry;
        host_slots_[pairs] = slot;
        host_row_numbers_[pairs] = static_cast<std::uint32_t>(host_list_rows_[slot]);
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
      copy_to_device(stream_, std::span<const std::uint32_t>(host_row_numbers_.data(), pairs),
                     row_numbers_.data(), exact_search);
    }
    launch_evaluate_rows(stream_.handle(), found_.base.type(),
                         {.queries = queries_.data(),
                          .rows = gather ? rows_.data() : found_.base.data(),
                          .stride_bytes = gather ? shape_.base_bytes : found_.base.stride_bytes(),
                          .dim = static_cast<std::uint32_t>(shape_.dim),
                          .metric = found_.metric,
                          .pairs = pairs,
                          .columns = shape_.length,
                          .slots = slots_.data(),
                          .row_numbers = gather ? nullptr : row_numbers_.data(),
                          .keys = keys_.data()});
  }

  void gather_rows(std::size_t pairs) {
    constexpr std::size_t task_pairs = 256;
    stream_.context.threads->for_each(divide_up(pairs, task_pairs), [&](std::size_t task) {
      for (std::size_t pair = task * task_pairs; pair < std::min(pairs, (task + 1) * task_pairs); ++pair)
        std::memcpy(host_rows_.data() + pair * shape_.base_bytes, found_.base.row(host_row_numbers_[pair]),
                    shape_.base_bytes);
    });
  }

  // The lists are in the order of scores: ties go by row.
  void select(std::size_t count) {
    selection_.run(stream_.handle(), Ties::wide_ids,
                   {.values = keys_.data(),
                    .value_stride = shape_.length,
                    .wide_ids = found_.scores.rows(first_),
                    .id_stride = shape_.length,
                    .rows = count,
                    .cols = static_cast<std::uint32_t>(shape_.length),
                    .k = static_cast<std::uint32_t>(shape_.k),
                    .best = best_keys_.data(),
                    .ids = best_rows_.data(),
                    .best_stride = shape_.k},
                   workspace_.data());
    const std::size_t answers = count * shape_.k;
    copy_to_host(stream_, best_keys_.data(), host_best_keys_.span().first(answers), exact_search);
    copy_to_host(stream_, best_rows_.data(), host_best_rows_.span().first(answers), exact_search);
    stream_.synchronize(exact_search);
  }

  const CudaStream& stream_;
  const TopK& found_;
  const Shape shape_;
  const Tiling tiling_;
  const RowSelection selection_;
  std::size_t first_ = 0;  // query of the tile
  DeviceBuffer<std::byte> raw_queries_;
  DeviceBuffer<float> queries_;
  DeviceBuffer<std::byte> rows_;  // gathered, of a base on the host
  DeviceBuffer<std::uint64_t> slots_;
  DeviceBuffer<std::uint32_t> row_numbers_;
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
  Buffer<std::uint32_t> host_row_numbers_;
  Buffer<std::uint32_t> chances_;  // entries of the list that are evaluated
  Buffer<bool> proven_;            // by scores alone
};

}  // namespace

std::uint64_t finishing_bytes(const KnnCostsArgs& args, Encoding encoding) {
  return std::max(evaluating_bytes(args), bytes_of({args.dim, args.dim * element_size(args.query_type),
                                                    args.dim * element_size(args.base_type), args.k,
                                                    TopK::list_length(args.k, encoding)},
                                                   {1, least_pairs}));
}

void finish_top_k(Stream& stream, const FinishTopKArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  auto& found = static_cast<TopK&>(args.found);
  cuda.synchronize(exact_search);
  found.tile.reset();
  const Shape shape = {found.base.dim(), found.base.dim() * element_size(found.query_rows.type()),
                       found.base.dim() * element_size(found.base.type()), found.k, found.scores.length()};
  const std::size_t queries = found.queries.rows;
  std::vector<std::uint32_t> open;
  {
    Finish finish = with_working_memory(
        cuda, bytes_of(shape, {1, least_pairs}), tuning::good_working_bytes, 0, [&](std::uint64_t bytes) {
          return Finish(cuda, found, shape, choose_tiling(shape, queries, bytes));
        });
    for (std::size_t first = 0; first < queries; first += finish.tile_queries())
      finish.run(args, first, std::min(finish.tile_queries(), queries - first), open);
  }
  evaluate_all(cuda, args, found, open);
}

}  // namespace nearwise::gpu

#include "backend/cuda/exact/exhaustive_search.h"

#include <algorithm>

#include "backend/cuda/device/host_results.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/exact/write_results.h"
#include "backend/cuda/kernels/rows/evaluate_rows.h"
#include "backend/cuda/kernels/rows/widen_rows.h"
#include "backend/cuda/rows/tiling.h"
#include "backend/cuda/tuning/exact_search.h"
#include "core/checked.h"

namespace nearwise::gpu {
namespace {

constexpr TileLimits limits = {.max = {1024, 65536}, .min_rows = 64};

struct Shape {
  std::size_t dim = 0;
  std::size_t query_bytes = 0;  // of one query
  std::size_t base_bytes = 0;
  std::size_t k = 0;
};

std::uint64_t bytes_of(const Shape& shape, const Tiling& tiling) {
  return device_bytes(tiling.queries, shape.query_bytes) +
         device_bytes(tiling.queries * shape.dim, sizeof(float)) +
         device_bytes(tiling.rows, shape.base_bytes) +
         device_bytes(tiling.queries * tiling.rows, sizeof(float)) +
         device_bytes(RunningTopK::workspace_bytes(tiling.queries, tiling.rows, shape.k), 1) +
         RunningTopK::bytes(tiling.queries, shape.k) + buffer_bytes(tiling.queries * shape.k, sizeof(float)) +
         buffer_bytes(tiling.queries * shape.k, sizeof(Id));
}

class ExhaustiveSearch {
 public:
  ExhaustiveSearch(const CudaStream& stream, const TopKCollector& top_k, const Shape& shape,
                   const Tiling& tiling)
      : stream_(stream),
        top_k_(top_k),
        shape_(shape),
        tiling_(tiling),
        raw_queries_(stream, tiling.queries * shape.query_bytes, exact_search),
        queries_(stream, tiling.queries * shape.dim, exact_search),
        raw_rows_(stream, on_host() ? tiling.rows * shape.base_bytes : 0, exact_search),
        keys_(stream, tiling.queries * tiling.rows, exact_search),
        workspace_(stream, RunningTopK::workspace_bytes(tiling.queries, tiling.rows, shape.k), exact_search),
        best_(stream, tiling.queries, shape.k, exact_search),
        host_keys_(stream.budget(), tiling.queries * shape.k),
        host_rows_(stream.budget(), tiling.queries * shape.k) {}

  std::size_t tile_queries() const { return tiling_.queries; }

  // At most tile_queries() queries.
  void run(const FinishTopKArgs& args, std::span<const std::uint32_t> queries) {
    copy_queries(queries);
    best_.clear(stream_);
    const std::size_t all = top_k_.base.rows();
    const std::size_t tiles = divide_up(all, tiling_.rows);
    for (std::size_t tile = 0; tile < tiles; ++tile) {
      stream_.context.cancel.check();
      const std::size_t first = all * tile / tiles;
      evaluate_tile(queries.size(), first, all * (tile + 1) / tiles - first);
    }
    const std::size_t entries = queries.size() * shape_.k;
    HostResults copies(stream_);
    copies.add(best_.values(0), host_keys_.span().first(entries), exact_search);
    copies.add(best_.rows(0), host_rows_.span().first(entries), exact_search);
    copies.finish(exact_search);
    for (std::size_t i = 0; i < queries.size(); ++i)
      write_results(args, top_k_.metric, queries[i], host_keys_.span().subspan(i * shape_.k, shape_.k),
                    host_rows_.span().subspan(i * shape_.k, shape_.k));
  }

 private:
  bool on_host() const { return top_k_.base.place().kind == DeviceKind::cpu; }

  void copy_queries(std::span<const std::uint32_t> queries) {
    for (std::size_t i = 0; i < queries.size(); ++i)
      copy_rows_to_device(stream_, top_k_.query_rows.slice(queries[i], 1),
                          raw_queries_.data() + i * shape_.query_bytes);
    launch_widen_rows(stream_.handle(), top_k_.query_rows.type(), raw_queries_.data(), queries.size(),
                      shape_.dim, queries_.data());
  }

  void evaluate_tile(std::size_t queries, std::size_t first, std::size_t count) {
    const RowsView rows = top_k_.base.slice(first, count);
    if (on_host()) copy_rows_to_device(stream_, rows, raw_rows_.data());
    launch_evaluate_rows(stream_.handle(), rows.type(),
                         {.queries = queries_.data(),
                          .rows = on_host() ? raw_rows_.data() : rows.data(),
                          .stride_bytes = on_host() ? shape_.base_bytes : rows.stride_bytes(),
                          .dim = static_cast<std::uint32_t>(shape_.dim),
                          .metric = top_k_.metric,
                          .pairs = queries * count,
                          .columns = count,
                          .keys = keys_.data()});
    best_.add(stream_, {keys_.data(), queries, count, first}, 0, tiling_.queries, workspace_.data());
  }

  const CudaStream& stream_;
  const TopKCollector& top_k_;
  const Shape shape_;
  const Tiling tiling_;
  DeviceBuffer<std::byte> raw_queries_;  // in their own type
  DeviceBuffer<float> queries_;
  DeviceBuffer<std::byte> raw_rows_;  // a tile of a host base
  DeviceBuffer<float> keys_;          // [queries, rows]
  DeviceBuffer<std::byte> workspace_;
  RunningTopK best_;
  Buffer<float> host_keys_;
  Buffer<Id> host_rows_;
};

}  // namespace

std::uint64_t exhaustive_search_bytes(const KnnCostsArgs& args) {
  return bytes_of(
      {args.dim, args.dim * element_size(args.query_type), args.dim * element_size(args.base_type), args.k},
      {1, limits.min_rows});
}

void search_exhaustively(const CudaStream& stream, const FinishTopKArgs& args, const TopKCollector& top_k,
                         std::span<const std::uint32_t> queries) {
  if (queries.empty()) return;
  const Shape shape = {top_k.base.dim(), top_k.base.dim() * element_size(top_k.query_rows.type()),
                       top_k.base.dim() * element_size(top_k.base.type()), top_k.k};
  ExhaustiveSearch search = with_working_memory(
      stream, bytes_of(shape, {1, limits.min_rows}), tuning::target_working_bytes, 0,
      [&](std::uint64_t bytes) {
        return ExhaustiveSearch(
            stream, top_k, shape,
            choose_tiling(limits, {queries.size(), top_k.base.rows()}, bytes,
                          [&](const Tiling& candidate) { return bytes_of(shape, candidate); }));
      });
  for (std::size_t first = 0; first < queries.size(); first += search.tile_queries())
    search.run(args, queries.subspan(first, std::min(search.tile_queries(), queries.size() - first)));
}

}  // namespace nearwise::gpu

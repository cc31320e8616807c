#include "backend/cuda/exact/evaluate_all.h"

#include <algorithm>

#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/exact/answer_writer.h"
#include "backend/cuda/kernels/rows/evaluate_rows.h"
#include "backend/cuda/kernels/rows/widen_rows.h"
#include "backend/cuda/rows/tiling.h"
#include "backend/cuda/tuning/exact_search.h"
#include "core/checked.h"

namespace nearwise::gpu {
namespace {

constexpr TileLimits limits = {.most = {1024, 65536}, .least_rows = 64};

struct Shape {
  std::size_t dim = 0;
  std::size_t query_bytes = 0;  // of a row
  std::size_t base_bytes = 0;
  std::size_t k = 0;
};

std::uint64_t bytes_of(const Shape& shape, const Tiling& tiling) {
  return device_bytes(tiling.queries, shape.query_bytes) +
         device_bytes(tiling.queries * shape.dim, sizeof(float)) +
         device_bytes(tiling.rows, shape.base_bytes) +
         device_bytes(tiling.queries * tiling.rows, sizeof(float)) +
         device_bytes(BestLists::workspace_bytes(tiling.queries, tiling.rows, shape.k), 1) +
         BestLists::bytes(tiling.queries, shape.k) + buffer_bytes(tiling.queries * shape.k, sizeof(float)) +
         buffer_bytes(tiling.queries * shape.k, sizeof(Id));
}

class Evaluation {
 public:
  Evaluation(const CudaStream& stream, const TopK& found, const Shape& shape, const Tiling& tiling)
      : stream_(stream),
        found_(found),
        shape_(shape),
        tiling_(tiling),
        raw_queries_(stream, tiling.queries * shape.query_bytes, exact_search),
        queries_(stream, tiling.queries * shape.dim, exact_search),
        raw_rows_(stream, on_host() ? tiling.rows * shape.base_bytes : 0, exact_search),
        keys_(stream, tiling.queries * tiling.rows, exact_search),
        workspace_(stream, BestLists::workspace_bytes(tiling.queries, tiling.rows, shape.k), exact_search),
        lists_(stream, tiling.queries, shape.k, exact_search),
        host_keys_(stream.budget(), tiling.queries * shape.k),
        host_rows_(stream.budget(), tiling.queries * shape.k) {}

  std::size_t tile_queries() const { return tiling_.queries; }

  // At most tile_queries().
  void run(const FinishTopKArgs& args, std::span<const std::uint32_t> queries) {
    copy_queries(queries);
    lists_.clear(stream_);
    const std::size_t all = found_.base.rows();
    const std::size_t tiles = divide_up(all, tiling_.rows);
    for (std::size_t tile = 0; tile < tiles; ++tile) {
      stream_.context.cancel.check();
      const std::size_t first = all * tile / tiles;
      evaluate_tile(queries.size(), first, all * (tile + 1) / tiles - first);
    }
    const std::size_t entries = queries.size() * shape_.k;
    copy_to_host(stream_, lists_.values(0), host_keys_.span().first(entries), exact_search);
    copy_to_host(stream_, lists_.rows(0), host_rows_.span().first(entries), exact_search);
    stream_.synchronize(exact_search);
    for (std::size_t i = 0; i < queries.size(); ++i)
      write_answers(args, found_.metric, queries[i], host_keys_.span().subspan(i * shape_.k, shape_.k),
                    host_rows_.span().subspan(i * shape_.k, shape_.k));
  }

 private:
  bool on_host() const { return found_.base.place().kind == DeviceKind::cpu; }

  void copy_queries(std::span<const std::uint32_t> queries) {
    for (std::size_t i = 0; i < queries.size(); ++i)
      copy_rows_to_device(stream_, found_.query_rows.slice(queries[i], 1),
                          raw_queries_.data() + i * shape_.query_bytes);
    launch_widen_rows(stream_.handle(), found_.query_rows.type(), raw_queries_.data(), queries.size(),
                      shape_.dim, queries_.data());
  }

  void evaluate_tile(std::size_t queries, std::size_t first, std::size_t count) {
    const RowsView rows = found_.base.slice(first, count);
    if (on_host()) copy_rows_to_device(stream_, rows, raw_rows_.data());
    launch_evaluate_rows(stream_.handle(), rows.type(),
                         {.queries = queries_.data(),
                          .rows = on_host() ? raw_rows_.data() : rows.data(),
                          .stride_bytes = on_host() ? shape_.base_bytes : rows.stride_bytes(),
                          .dim = static_cast<std::uint32_t>(shape_.dim),
                          .metric = found_.metric,
                          .pairs = queries * count,
                          .columns = count,
                          .keys = keys_.data()});
    lists_.add(stream_, {keys_.data(), queries, count, first}, 0, tiling_.queries, workspace_.data());
  }

  const CudaStream& stream_;
  const TopK& found_;
  const Shape shape_;
  const Tiling tiling_;
  DeviceBuffer<std::byte> raw_queries_;  // as they are
  DeviceBuffer<float> queries_;
  DeviceBuffer<std::byte> raw_rows_;  // a tile of a base on the host
  DeviceBuffer<float> keys_;          // [queries, rows]
  DeviceBuffer<std::byte> workspace_;
  BestLists lists_;
  Buffer<float> host_keys_;
  Buffer<Id> host_rows_;
};

}  // namespace

std::uint64_t evaluating_bytes(const KnnCostsArgs& args) {
  return bytes_of(
      {args.dim, args.dim * element_size(args.query_type), args.dim * element_size(args.base_type), args.k},
      {1, limits.least_rows});
}

void evaluate_all(const CudaStream& stream, const FinishTopKArgs& args, const TopK& found,
                  std::span<const std::uint32_t> queries) {
  if (queries.empty()) return;
  const Shape shape = {found.base.dim(), found.base.dim() * element_size(found.query_rows.type()),
                       found.base.dim() * element_size(found.base.type()), found.k};
  Evaluation evaluation = with_working_memory(
      stream, bytes_of(shape, {1, limits.least_rows}), tuning::good_working_bytes, 0,
      [&](std::uint64_t bytes) {
        return Evaluation(stream, found, shape,
                          choose_tiling(limits, {queries.size(), found.base.rows()}, bytes,
                                        [&](const Tiling& tried) { return bytes_of(shape, tried); }));
      });
  for (std::size_t first = 0; first < queries.size(); first += evaluation.tile_queries())
    evaluation.run(args, queries.subspan(first, std::min(evaluation.tile_queries(), queries.size() - first)));
}

}  // namespace nearwise::gpu

#include "backend/cuda/rows/pair_evaluator.h"

#include "backend/cuda/kernels/rows/widen_rows.h"
#include "backend/cuda/rows/packed_rows.h"

namespace nearwise::gpu {

std::uint64_t PairEvaluator::bytes(const Shape& shape, const Capacity& capacity) {
  return device_bytes(capacity.queries, shape.query_bytes) +
         device_bytes(capacity.queries * shape.dim, sizeof(float)) +
         device_bytes(capacity.pairs, shape.row_bytes) + device_bytes(capacity.pairs, sizeof(std::uint64_t)) +
         device_bytes(capacity.pairs, sizeof(std::uint32_t)) + buffer_bytes(capacity.pairs, shape.row_bytes);
}

PairEvaluator::PairEvaluator(const CudaStream& stream, const RowsView& queries, Metric metric,
                             const Shape& shape, const Capacity& capacity, const char* operation)
    : stream_(stream),
      all_queries_(queries),
      metric_(metric),
      shape_(shape),
      capacity_(capacity),
      operation_(operation),
      raw_queries_(stream, capacity.queries * shape.query_bytes, operation),
      queries_(stream, capacity.queries * shape.dim, operation),
      rows_(stream, capacity.pairs * shape.row_bytes, operation),
      slots_(stream, capacity.pairs, operation),
      row_indices_(stream, capacity.pairs, operation),
      host_rows_(stream.budget(), capacity.pairs * shape.row_bytes) {}

void PairEvaluator::load_queries(std::size_t first, std::size_t count) {
  copy_rows_to_device(stream_, all_queries_.slice(first, count), raw_queries_.data());
  launch_widen_rows(stream_.handle(), all_queries_.type(), raw_queries_.data(), count, shape_.dim,
                    queries_.data());
}

void PairEvaluator::run(ElementType type, std::span<const std::uint64_t> slots, std::size_t columns,
                        float* keys) {
  const std::size_t row_bytes = shape_.dim * element_size(type);
  copy_to_device(stream_, slots, slots_.data(), operation_);
  copy_to_device(stream_, std::span<const std::byte>(host_rows_.data(), slots.size() * row_bytes),
                 rows_.data(), operation_);
  launch_evaluate_rows(stream_.handle(), type,
                       {.queries = queries_.data(),
                        .rows = rows_.data(),
                        .stride_bytes = row_bytes,
                        .dim = static_cast<std::uint32_t>(shape_.dim),
                        .metric = metric_,
                        .pairs = slots.size(),
                        .columns = columns,
                        .slots = slots_.data(),
                        .keys = keys});
}

void PairEvaluator::evaluate(const RowsView& rows, std::span<const std::uint64_t> slots,
                             std::span<const std::uint32_t> row_indices, std::size_t columns, float* keys) {
  for (std::size_t first = 0; first < slots.size(); first += capacity_.pairs) {
    const std::size_t count = std::min(capacity_.pairs, slots.size() - first);
    copy_to_device(stream_, slots.subspan(first, count), slots_.data(), operation_);
    copy_to_device(stream_, row_indices.subspan(first, count), row_indices_.data(), operation_);
    launch_evaluate_rows(stream_.handle(), rows.type(),
                         {.queries = queries_.data(),
                          .rows = rows.data(),
                          .stride_bytes = rows.stride_bytes(),
                          .dim = static_cast<std::uint32_t>(shape_.dim),
                          .metric = metric_,
                          .pairs = count,
                          .columns = columns,
                          .slots = slots_.data(),
                          .row_indices = row_indices_.data(),
                          .keys = keys});
  }
}

}  // namespace nearwise::gpu

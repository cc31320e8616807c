// Reported distances of pairs of queries and rows, which the host gathers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/kernels/rows/evaluate_rows.h"
#include "core/checked.h"
#include "core/memory.h"
#include "nearwise/matrix.h"

namespace nearwise::gpu {

class PairEvaluator {
 public:
  struct Shape {
    std::size_t dim = 0;
    std::size_t query_bytes = 0;  // of one query
    std::size_t row_bytes = 0;    // of the largest row type
  };
  struct Capacity {
    std::size_t queries = 0;
    std::size_t pairs = 0;  // evaluated per launch
  };
  static std::uint64_t bytes(const Shape& shape, const Capacity& capacity);

  PairEvaluator(const CudaStream& stream, const RowsView& queries, Metric metric, const Shape& shape,
                const Capacity& capacity, const char* operation);

  // Query 0 of the slots is query `first`.
  void load_queries(std::size_t first, std::size_t count);

  // keys [queries, columns] at these slots. write(pair, out) writes the row of a pair; it runs on any thread.
  template <typename WriteRow>
  void evaluate(ElementType type, std::span<const std::uint64_t> slots, std::size_t columns, float* keys,
                const WriteRow& write) {
    const std::size_t row_bytes = shape_.dim * element_size(type);
    for (std::size_t first = 0; first < slots.size(); first += capacity_.pairs) {
      const auto batch = slots.subspan(first, std::min(capacity_.pairs, slots.size() - first));
      constexpr std::size_t task_pairs = 256;
      stream_.context.threads->for_each(divide_up(batch.size(), task_pairs), [&](std::size_t task) {
        const std::size_t end = std::min(batch.size(), (task + 1) * task_pairs);
        for (std::size_t pair = task * task_pairs; pair < end; ++pair)
          write(first + pair, host_rows_.data() + pair * row_bytes);
      });
      run(type, batch, columns, keys);
    }
  }

  // The same for rows on the device, by index.
  void evaluate(const RowsView& rows, std::span<const std::uint64_t> slots,
                std::span<const std::uint32_t> row_indices, std::size_t columns, float* keys);

 private:
  void run(ElementType type, std::span<const std::uint64_t> slots, std::size_t columns, float* keys);

  const CudaStream& stream_;
  const RowsView& all_queries_;
  const Metric metric_;
  const Shape shape_;
  const Capacity capacity_;
  const char* const operation_;
  DeviceBuffer<std::byte> raw_queries_;
  DeviceBuffer<float> queries_;
  DeviceBuffer<std::byte> rows_;
  DeviceBuffer<std::uint64_t> slots_;
  DeviceBuffer<std::uint32_t> row_indices_;
  Buffer<std::byte> host_rows_;
};

}  // namespace nearwise::gpu

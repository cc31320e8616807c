#include "backend/cuda/graph/join_rows.h"

#include <algorithm>
#include <cstring>

#include "backend/cuda/device/host_results.h"
#include "backend/cuda/rows/packed_rows.h"
#include "backend/cuda/tuning/join_groups.h"
#include "core/checked.h"

namespace nearwise::gpu {
namespace {

constexpr Encoding encoding = Encoding::f32;

// Without bias columns: every row is on both sides of pairs, so the kernels add the bias.
constexpr std::size_t width_for(std::size_t dim) {
  return packed_width(Metric::inner_product, dim, encoding);
}

std::size_t piece_rows(std::size_t row_bytes) {
  return std::max<std::size_t>(1, tuning::join_piece_bytes / row_bytes);
}

}  // namespace

JoinRows::JoinRows(const CudaStream& stream, const StartJoinArgs& args)
    : args_(args),
      row_bytes_(args.rows.dim() * element_size(args.rows.type())),
      width_(width_for(args.rows.dim())),
      bound_(args.metric, products_of(encoding), args.rows.dim()),
      rows_(stream, checked_multiply(args.rows.rows(), row_bytes_, join_name), join_name),
      packed_(stream, checked_multiply(args.rows.rows(), width_, join_name), join_name),
      lengths_(stream, args.rows.rows(), join_name),
      lists_(stream, checked_multiply(args.rows.rows(), args.degree, join_name), join_name),
      locks_(stream, args.rows.rows(), join_name) {
  check(cudaMemsetAsync(locks_.data(), 0, locks_.size() * sizeof(unsigned), stream.handle()), join_name);
  load_rows(stream);
  pack(stream);
}

std::uint64_t JoinRows::bytes_per_row(const KnnCostsArgs& args) {
  return args.dim * element_size(args.base_type) + width_for(args.dim) * sizeof(float) + sizeof(Lengths) +
         args.k * sizeof(NeighborEntry) + sizeof(unsigned);
}

std::uint64_t JoinRows::starting_bytes(const KnnCostsArgs& args) {
  constexpr std::size_t parts = 5;
  const std::size_t row_bytes = args.dim * element_size(args.base_type);
  return parts * device_bytes(1, 1) + device_bytes(args.dim, sizeof(float)) +
         device_bytes(1, sizeof(PackedSummary)) + buffer_bytes(piece_rows(row_bytes) * row_bytes, 1);
}

// Gathers the rows piece by piece on the host.
void JoinRows::load_rows(const CudaStream& stream) {
  constexpr std::size_t task_rows = 1024;
  const std::size_t count = args_.rows.rows();
  Buffer<std::byte> piece(stream.budget(), std::min(count, piece_rows(row_bytes_)) * row_bytes_);
  const std::size_t piece_capacity = piece.size() / row_bytes_;
  for (std::size_t first = 0; first < count; first += piece_capacity) {
    stream.context.cancel.check();
    const std::size_t rows = std::min(piece_capacity, count - first);
    stream.context.threads->for_each(divide_up(rows, task_rows), [&](std::size_t task) {
      const std::size_t end = std::min(rows, (task + 1) * task_rows);
      for (std::size_t i = task * task_rows; i < end; ++i)
        std::memcpy(piece.data() + i * row_bytes_, args_.rows.row(args_.order[first + i]), row_bytes_);
    });
    copy_to_device(stream, std::span<const std::byte>(piece.data(), rows * row_bytes_),
                   rows_.data() + first * row_bytes_, join_name);
  }
}

void JoinRows::pack(const CudaStream& stream) {
  const std::size_t count = args_.rows.rows();
  DeviceBuffer<float> centre(stream, args_.centre.size(), join_name);
  if (!args_.centre.empty()) copy_to_device(stream, args_.centre, centre.data(), join_name);
  DeviceBuffer<PackedSummary> device_summary(stream, 1, join_name);
  PackedSummary summary = {.first_bad_row = count};
  copy_to_device(stream, std::span<const PackedSummary>(&summary, 1), device_summary.data(), join_name);
  launch_pack_rows(stream.handle(), args_.rows.type(), encoding,
                   {.rows = rows_.data(),
                    .stride_bytes = row_bytes_,
                    .count = count,
                    .dim = static_cast<std::uint32_t>(args_.rows.dim()),
                    .width = static_cast<std::uint32_t>(width_),
                    .centre = centre.data(),
                    .normalise = args_.metric == Metric::cosine,
                    .out = reinterpret_cast<std::byte*>(packed_.data()),
                    .lengths = lengths_.data(),
                    .summary = device_summary.data()});
  fetch(stream, device_summary.data(), std::span(&summary, 1), join_name);
  if (summary.first_bad_row != count) refuse_row(RowsRole::base, args_.order[summary.first_bad_row]);
  longest_ = longest_of(summary);
}

void JoinRows::fetch_lists(const CudaStream& stream) {
  copy_to_device(stream, std::span<const NeighborEntry>(args_.lists), lists_.data(), join_name);
}

void JoinRows::return_lists(const CudaStream& stream) {
  fetch(stream, lists_.data(), args_.lists, join_name);
}

JoinTask JoinRows::task() {
  return {.packed = packed_.data(),
          .width = static_cast<std::uint32_t>(width_),
          .lengths = lengths_.data(),
          .rows = rows_.data(),
          .dim = static_cast<std::uint32_t>(args_.rows.dim()),
          .metric = args_.metric,
          .bound = bound_,
          .longest = longest_,
          .scores_hold = ScoreBound::holds_for(longest_, longest_),
          .degree = static_cast<std::uint32_t>(args_.degree),
          .lists = reinterpret_cast<unsigned long long*>(lists_.data()),
          .locks = locks_.data()};
}

}  // namespace nearwise::gpu

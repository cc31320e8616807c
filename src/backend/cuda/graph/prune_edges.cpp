// Robust pruning of candidate edges: codes are copied to the device once, candidates batch by batch.
#include <algorithm>
#include <limits>
#include <memory>

#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/host_results.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/kernels/graph/prune_edges.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/packed_rows.h"
#include "backend/cuda/tuning/exact_search.h"
#include "backend/cuda/tuning/search_graph.h"
#include "core/checked.h"
#include "core/progress.h"

namespace nearwise::gpu {
namespace {

constexpr const char* prune_name = "prune_edges";  // in error messages

struct Capacity {
  std::size_t rows = 0;
  std::size_t candidates = 0;
};

class EdgePruner {
 public:
  EdgePruner(const CudaStream& stream, const PruneEdgesArgs& args, const std::byte* codes,
             const Capacity& capacity)
      : stream_(stream),
        args_(args),
        capacity_(capacity),
        rows_(stream, capacity.rows, prune_name),
        offsets_(stream, capacity.rows + 1, prune_name),
        candidates_(stream, capacity.candidates, prune_name),
        edges_(stream, capacity.rows * args.edges.cols(), prune_name),
        host_rows_(stream.budget(), capacity.rows),
        host_offsets_(stream.budget(), capacity.rows + 1),
        host_candidates_(stream.budget(), capacity.candidates),
        host_edges_(stream.budget(), capacity.rows * args.edges.cols()),
        task_{.codes = reinterpret_cast<const std::uint8_t*>(codes),
              .row_bytes = static_cast<std::uint32_t>(args.codes.cols()),
              .rows = rows_.data(),
              .offsets = offsets_.data(),
              .candidates = candidates_.data(),
              .degree = static_cast<std::uint32_t>(args.edges.cols()),
              .keep_short_lists = args.keep_short_lists,
              .edges = edges_.data()} {
    host_offsets_[0] = 0;
  }
  ~EdgePruner() { stream_.settle(); }
  EdgePruner(const EdgePruner&) = delete;
  EdgePruner& operator=(const EdgePruner&) = delete;

  static std::uint64_t bytes(const PruneEdgesArgs& args, const Capacity& capacity) {
    const auto both = [](std::size_t size) {
      return device_bytes(size, sizeof(std::uint32_t)) + buffer_bytes(size, sizeof(std::uint32_t));
    };
    return both(capacity.rows) + both(capacity.rows + 1) + both(capacity.candidates) +
           both(capacity.rows * args.edges.cols());
  }

  void run(std::size_t count) {
    for (std::size_t row = 0; row < count; ++row) {
      if (count_ == capacity_.rows || used_ + candidates_of(args_, row) > capacity_.candidates) prune(row);
      add(row);
    }
    prune(count);
  }

  // Of one row, at most.
  static std::size_t candidates_of(const PruneEdgesArgs& args, std::size_t row) {
    const std::uint64_t others = args.offsets.empty() ? 0 : args.offsets[row + 1] - args.offsets[row];
    return args.lists.cols() + others;
  }

 private:
  void add(std::size_t row) {
    host_rows_[count_] = args_.rows ? (*args_.rows)[row] : static_cast<std::uint32_t>(row);
    for (const std::int32_t other : args_.lists.row(row)) {
      if (other == no_edge) break;
      host_candidates_[used_++] = static_cast<std::uint32_t>(other);
    }
    if (!args_.offsets.empty())
      for (std::uint64_t i = args_.offsets[row]; i < args_.offsets[row + 1]; ++i)
        host_candidates_[used_++] = args_.others[i];
    host_offsets_[++count_] = static_cast<std::uint32_t>(used_);
  }

  // Prunes the rows that were added, which end at `end`. Their lists have been read: they may be the edges.
  void prune(std::size_t end) {
    if (count_ == 0) return;
    stream_.context.cancel.check();
    const auto send = [&](const Buffer<std::uint32_t>& from, std::size_t size, std::uint32_t* to) {
      copy_to_device(stream_, from.span().first(size), to, prune_name);
    };
    send(host_rows_, count_, rows_.data());
    send(host_offsets_, count_ + 1, offsets_.data());
    send(host_candidates_, used_, candidates_.data());
    task_.count = static_cast<std::uint32_t>(count_);
    launch_prune_edges(stream_.handle(), task_);
    const std::size_t degree = args_.edges.cols();
    fetch(stream_, edges_.data(), host_edges_.span().first(count_ * degree), prune_name);
    for (std::size_t i = 0; i < count_; ++i)
      std::copy_n(host_edges_.data() + i * degree, degree, args_.edges.row(end - count_ + i).begin());
    if (args_.progress != nullptr) args_.progress->add(count_);
    count_ = used_ = 0;
  }

  const CudaStream& stream_;
  const PruneEdgesArgs& args_;
  const Capacity capacity_;
  std::size_t count_ = 0;  // rows that were added
  std::size_t used_ = 0;   // their candidates
  DeviceBuffer<std::uint32_t> rows_;
  DeviceBuffer<std::uint32_t> offsets_;
  DeviceBuffer<std::uint32_t> candidates_;
  DeviceBuffer<std::int32_t> edges_;
  Buffer<std::uint32_t> host_rows_;
  Buffer<std::uint32_t> host_offsets_;
  Buffer<std::uint32_t> host_candidates_;
  Buffer<std::int32_t> host_edges_;
  PruneTask task_;
};

}  // namespace

void prune_edges(Stream& stream, const PruneEdgesArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  const std::size_t count = args.rows ? args.rows->size() : args.codes.rows();
  if (count == 0) return;
  DeviceBuffer<std::byte> codes(cuda, args.codes.rows() * args.codes.cols(), prune_name);
  copy_rows_to_device(
      cuda,
      RowsView(args.codes.data(), ElementType::u8, args.codes.rows(), args.codes.cols(), args.codes.stride()),
      codes.data());
  std::size_t most = 0;
  for (std::size_t row = 0; row < count; ++row) most = std::max(most, EdgePruner::candidates_of(args, row));
  if (most > std::numeric_limits<std::uint32_t>::max())
    fail(ErrorCode::unsupported, "{}: a row must have fewer than 2^32 candidates on a CUDA device, got {}",
         prune_name, most);
  // About as many candidates as reverse edges and edges together.
  const auto capacity_of = [&](std::size_t rows) {
    return Capacity{rows, std::max(most, rows * (args.lists.cols() + args.edges.cols()))};
  };
  const auto pruner =
      with_working_memory(cuda, EdgePruner::bytes(args, capacity_of(1)), tuning::target_working_bytes, 0,
                          [&](std::uint64_t bytes) {
                            std::size_t rows = std::min(count, tuning::max_pruned_rows);
                            while (rows > 1 && EdgePruner::bytes(args, capacity_of(rows)) > bytes)
                              rows = divide_up<std::size_t>(rows, 2);
                            return std::make_unique<EdgePruner>(cuda, args, codes.data(), capacity_of(rows));
                          });
  pruner->run(count);
}

}  // namespace nearwise::gpu

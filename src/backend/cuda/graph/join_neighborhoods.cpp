// One NN-Descent iteration: neighbours are sampled on the device and joined tile by tile. Only the counts of
// reverse links are copied to the host, for a prefix sum.
#include <algorithm>

#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/host_results.h"
#include "backend/cuda/graph/join_rows.h"
#include "backend/cuda/kernels/graph/sample_neighbors.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/tuning/join_groups.h"
#include "core/progress.h"

namespace nearwise::gpu {
namespace {

std::size_t forward_capacity(std::size_t degree, std::size_t sample) { return std::min(degree, 2 * sample); }

class Iteration {
 public:
  Iteration(const CudaStream& stream, JoinRows& rows, std::size_t sample, const Random& random)
      : stream_(stream),
        rows_(rows),
        sample_(sample),
        batch_(std::min(rows.size(), tuning::neighborhood_rows)),
        forward_(stream, rows.size() * forward_capacity(rows.degree(), sample), join_name),
        backward_(stream, forward_.size(), join_name),
        ends_(stream, rows.size(), join_name),
        members_(stream, batch_ * 4 * sample, join_name),
        tiles_(stream, batch_ * tiles_per_neighborhood(sample), join_name),
        host_ends_(stream.budget(), rows.size()),
        sample_task_{.lists = rows.task().lists,
                     .rows = static_cast<std::uint32_t>(rows.size()),
                     .degree = static_cast<std::uint32_t>(rows.degree()),
                     .sample = static_cast<std::uint32_t>(sample),
                     .taken = static_cast<std::uint32_t>(forward_capacity(rows.degree(), sample)),
                     .random = random,
                     .forward = forward_.data(),
                     .ends = ends_.data(),
                     .backward = backward_.data()} {}

  static std::uint64_t bytes(std::size_t rows, std::size_t degree, std::size_t sample) {
    const std::size_t batch = std::min(rows, tuning::neighborhood_rows);
    return 2 * device_bytes(rows * forward_capacity(degree, sample), sizeof(std::uint32_t)) +
           device_bytes(rows, sizeof(unsigned long long)) + buffer_bytes(rows, sizeof(unsigned long long)) +
           device_bytes(batch * 4 * sample, sizeof(std::uint32_t)) +
           device_bytes(batch * tiles_per_neighborhood(sample), sizeof(JoinTile));
  }

  void run(ProgressMeter* progress) {
    link();
    JoinTask join = rows_.task();
    join.tiles = tiles_.data();
    join.members = members_.data();
    for (std::size_t first = 0; first < rows_.size(); first += batch_) {
      stream_.context.cancel.check();
      const std::size_t count = std::min(batch_, rows_.size() - first);
      launch_gather_neighborhoods(stream_.handle(), sample_task_,
                                  {.first_row = static_cast<std::uint32_t>(first),
                                   .count = static_cast<std::uint32_t>(count),
                                   .members = members_.data(),
                                   .tiles = tiles_.data()});
      join.tile_count = static_cast<std::uint32_t>(count * tiles_per_neighborhood(sample_));
      launch_join_tiles(stream_.handle(), rows_.type(), join);
      stream_.synchronize(join_name);
      if (progress != nullptr) progress->add(count);
    }
  }

 private:
  void link() {
    check(cudaMemsetAsync(ends_.data(), 0, rows_.size() * sizeof(unsigned long long), stream_.handle()),
          join_name);
    launch_sample_neighbors(stream_.handle(), sample_task_);
    fetch(stream_, ends_.data(), host_ends_.span(), join_name);
    unsigned long long sum = 0;
    for (unsigned long long& end : host_ends_.span()) end = (sum += end) - end;
    copy_to_device(stream_, std::span<const unsigned long long>(host_ends_.span()), ends_.data(), join_name);
    launch_reverse_links(stream_.handle(), sample_task_);
  }

  const CudaStream& stream_;
  JoinRows& rows_;
  const std::size_t sample_;
  const std::size_t batch_;
  DeviceBuffer<std::uint32_t> forward_;
  DeviceBuffer<std::uint32_t> backward_;
  DeviceBuffer<unsigned long long> ends_;
  DeviceBuffer<std::uint32_t> members_;
  DeviceBuffer<JoinTile> tiles_;
  Buffer<unsigned long long> host_ends_;
  const SampleTask sample_task_;
};

}  // namespace

std::uint64_t join_neighborhoods_bytes(const Stream&, std::size_t rows, std::size_t degree,
                                       std::size_t sample) {
  return Iteration::bytes(rows, degree, sample);
}

void join_neighborhoods(Stream& stream, const JoinNeighborhoodsArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  auto& rows = static_cast<JoinRows&>(args.state);
  Iteration iteration(cuda, rows, args.sample, args.random);
  rows.fetch_lists(cuda);
  iteration.run(args.progress);
  rows.return_lists(cuda);
}

}  // namespace nearwise::gpu

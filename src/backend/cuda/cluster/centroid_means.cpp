// Means of clusters. The host sorts row indices by cluster and gathers rows; the device sums them in the
// CPU's order and segmentation, hence with the same bits; the host divides. Host work is small compared with
// reading all rows, which are in host memory.
#include <algorithm>
#include <cstring>
#include <span>

#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/host_results.h"
#include "backend/cuda/device/stream.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/kernels/cluster/sum_rows.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/tuning/centroid_means.h"
#include "backend/cuda/tuning/exact_search.h"
#include "core/checked.h"
#include "core/cluster_members.h"

namespace nearwise::gpu {
namespace {

constexpr const char* operation = "centroid_means";

constexpr std::size_t piece_rows = cluster_piece_rows;

struct Shape {
  std::size_t dim = 0;
  std::size_t row_bytes = 0;
};

// Size of a batch. A segment is a piece of a cluster, or the part of a piece that fits.
struct Capacity {
  std::size_t rows = 0;
  std::size_t segments = 0;
};

std::uint64_t bytes_of(const Shape& shape, const Capacity& capacity) {
  const std::size_t sums = capacity.segments * (shape.dim + 1);
  return device_bytes(capacity.rows, shape.row_bytes) + device_bytes(capacity.rows, sizeof(std::uint32_t)) +
         2 * device_bytes(capacity.rows, sizeof(double)) +
         device_bytes(capacity.segments, sizeof(RowSegment)) +
         device_bytes(capacity.segments * shape.dim, sizeof(float)) + device_bytes(sums, sizeof(double)) +
         buffer_bytes(capacity.rows, shape.row_bytes) + buffer_bytes(capacity.rows, sizeof(std::uint32_t)) +
         buffer_bytes(capacity.segments, sizeof(RowSegment)) +
         buffer_bytes(capacity.segments * shape.dim, sizeof(float)) + buffer_bytes(sums, sizeof(double)) +
         buffer_bytes(shape.dim + 1, sizeof(double));
}

// Batches with several clusters need fewer segments than rows.
Capacity capacity_of(std::size_t rows) {
  return {rows, std::max<std::size_t>(1, rows / tuning::rows_per_segment)};
}

Capacity choose_capacity(const Shape& shape, std::size_t rows, std::uint64_t bytes) {
  Capacity capacity = capacity_of(std::min(rows, tuning::max_summed_rows));
  while (capacity.rows > 1 && bytes_of(shape, capacity) > bytes)
    capacity = capacity_of(divide_up<std::size_t>(capacity.rows, 2));
  return capacity;
}

// Sums the members of all clusters, batch by batch.
class Means {
 public:
  Means(const CudaStream& stream, const CentroidMeansArgs& args, const Shape& shape, const Capacity& capacity)
      : stream_(stream),
        args_(args),
        shape_(shape),
        capacity_(capacity),
        rows_(stream, capacity.rows * shape.row_bytes, operation),
        owners_(stream, capacity.rows, operation),
        squares_(stream, capacity.rows, operation),
        lengths_(stream, args.metric == Metric::cosine ? capacity.rows : 0, operation),
        segments_(stream, capacity.segments, operation),
        centroids_(stream, capacity.segments * shape.dim, operation),
        sums_(stream, capacity.segments * columns(), operation),
        host_rows_(stream.budget(), capacity.rows * shape.row_bytes),
        host_owners_(stream.budget(), capacity.rows),
        host_segments_(stream.budget(), capacity.segments),
        host_centroids_(stream.budget(), capacity.segments * shape.dim),
        host_sums_(stream.budget(), capacity.segments * columns()),
        cluster_sums_(stream.budget(), columns()) {
    std::ranges::fill(cluster_sums_.span(), 0.0);
  }

  void run() {
    while (collect_batch()) {
      stream_.context.cancel.check();
      sum_batch();
      add_sums();
    }
  }

 private:
  std::size_t columns() const { return shape_.dim + 1; }
  std::size_t begin_of(std::size_t cluster) const { return cluster == 0 ? 0 : args_.ends[cluster - 1]; }

  // Segments from the end of the last batch; false: no members left.
  bool collect_batch() {
    batch_first_ = position_;
    first_cluster_ = cluster_;
    batch_rows_ = 0;
    batch_segments_ = 0;
    while (cluster_ < args_.ends.size() && batch_rows_ < capacity_.rows &&
           batch_segments_ < capacity_.segments) {
      const std::size_t begin = begin_of(cluster_);
      const std::size_t end = args_.ends[cluster_];
      if (position_ == end) {
        if (begin == end) write_mean(cluster_, 0);
        ++cluster_;
        continue;
      }
      const std::size_t done = (position_ - begin) % piece_rows;
      const std::size_t count = std::min({piece_rows - done, end - position_, capacity_.rows - batch_rows_});
      host_segments_[batch_segments_] = {static_cast<std::uint32_t>(batch_rows_),
                                         static_cast<std::uint32_t>(count), done != 0};
      std::fill_n(host_owners_.data() + batch_rows_, count, static_cast<std::uint32_t>(batch_segments_));
      std::ranges::copy(args_.centroids.row(cluster_), host_centroids_.data() + batch_segments_ * shape_.dim);
      position_ += count;
      batch_rows_ += count;
      ++batch_segments_;
    }
    return batch_rows_ > 0;
  }

  void sum_batch() {
    gather_rows();
    // The first segment continues the last piece of the previous batch.
    if (host_segments_[0].continues && last_segment_ != 0)
      check(cudaMemcpyAsync(sums_.data(), sums_.data() + last_segment_ * columns(),
                            columns() * sizeof(double), cudaMemcpyDeviceToDevice, stream_.handle()),
            operation);
    last_segment_ = batch_segments_ - 1;
    send(host_rows_, rows_, batch_rows_ * shape_.row_bytes);
    send(host_owners_, owners_, batch_rows_);
    send(host_segments_, segments_, batch_segments_);
    send(host_centroids_, centroids_, batch_segments_ * shape_.dim);
    launch_sum_rows(stream_.handle(), args_.rows.type(),
                    {.rows = rows_.data(),
                     .count = batch_rows_,
                     .dim = static_cast<std::uint32_t>(shape_.dim),
                     .unit_length = args_.metric == Metric::cosine,
                     .segments = segments_.data(),
                     .owners = owners_.data(),
                     .centroids = centroids_.data(),
                     .segment_count = batch_segments_,
                     .squares = squares_.data(),
                     .lengths = lengths_.data(),
                     .sums = sums_.data()});
    fetch(stream_, sums_.data(), host_sums_.span().first(batch_segments_ * columns()), operation);
  }

  template <typename T>
  void send(const Buffer<T>& from, DeviceBuffer<T>& to, std::size_t count) {
    copy_to_device(stream_, std::span<const T>(from.data(), count), to.data(), operation);
  }

  void gather_rows() {
    constexpr std::size_t task_rows = 256;
    stream_.context.threads->for_each(divide_up(batch_rows_, task_rows), [&](std::size_t task) {
      for (std::size_t i = task * task_rows; i < std::min(batch_rows_, (task + 1) * task_rows); ++i)
        std::memcpy(host_rows_.data() + i * shape_.row_bytes, args_.rows.row(args_.members[batch_first_ + i]),
                    shape_.row_bytes);
    });
  }

  // Adds finished pieces to their cluster's sums and writes the means of finished clusters.
  void add_sums() {
    std::size_t position = batch_first_;
    std::size_t cluster = first_cluster_;
    for (std::size_t segment = 0; segment < batch_segments_; ++segment) {
      while (args_.ends[cluster] == position) ++cluster;
      position += host_segments_[segment].count;
      const bool ends = args_.ends[cluster] == position;
      if (!ends && (position - begin_of(cluster)) % piece_rows != 0) continue;
      const double* const sums = host_sums_.data() + segment * columns();
      for (std::size_t i = 0; i < columns(); ++i) cluster_sums_[i] += sums[i];
      if (!ends) continue;
      write_mean(cluster, args_.ends[cluster] - begin_of(cluster));
      std::ranges::fill(cluster_sums_.span(), 0.0);
    }
  }

  // Uses cluster_sums_, which are zero for an empty cluster.
  void write_mean(std::size_t cluster, std::size_t size) {
    const std::span<const double> sum(cluster_sums_.data(), shape_.dim);
    args_.errors[cluster] = size == 0 ? 0 : cluster_sums_[shape_.dim];
    if (args_.sums.rows() != 0) std::ranges::copy(sum, args_.sums.row(cluster).begin());
    centroid_from_sum(sum, size, args_.metric, args_.centroids.row(cluster), args_.means.row(cluster));
  }

  const CudaStream& stream_;
  const CentroidMeansArgs& args_;
  const Shape shape_;
  const Capacity capacity_;
  std::size_t cluster_ = 0;        // of the next segment
  std::size_t position_ = 0;       // next position in the list of members
  std::size_t first_cluster_ = 0;  // of the batch
  std::size_t batch_first_ = 0;    // position in the list of members
  std::size_t batch_rows_ = 0;
  std::size_t batch_segments_ = 0;
  std::size_t last_segment_ = 0;  // of the previous batch
  DeviceBuffer<std::byte> rows_;
  DeviceBuffer<std::uint32_t> owners_;
  DeviceBuffer<double> squares_;
  DeviceBuffer<double> lengths_;
  DeviceBuffer<RowSegment> segments_;
  DeviceBuffer<float> centroids_;
  DeviceBuffer<double> sums_;
  Buffer<std::byte> host_rows_;
  Buffer<std::uint32_t> host_owners_;
  Buffer<RowSegment> host_segments_;
  Buffer<float> host_centroids_;
  Buffer<double> host_sums_;
  Buffer<double> cluster_sums_;  // of the cluster in progress
};

}  // namespace

std::uint64_t centroid_means_bytes(const Stream&, std::size_t rows, std::size_t dim) {
  return bytes_of({dim, dim * sizeof(float)}, capacity_of(std::min(rows, tuning::min_summed_rows)));
}

void centroid_means(Stream& stream, const CentroidMeansArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  sort_by_cluster(args.nearest, args.members, args.ends);
  const Shape shape = {args.rows.dim(), args.rows.dim() * element_size(args.rows.type())};
  with_working_memory(cuda, bytes_of(shape, {1, 1}), tuning::target_working_bytes, 0,
                      [&](std::uint64_t bytes) {
                        return Means(cuda, args, shape, choose_capacity(shape, args.rows.rows(), bytes));
                      })
      .run();
}

}  // namespace nearwise::gpu

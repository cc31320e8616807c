// Means of clusters. Row numbers are sorted by cluster, so that one task sums a cluster in the order of its
// rows with a single accumulator. Large clusters are split into pieces of fixed size whose sums are added in
// order, so the result does not depend on the number of threads.
#include <algorithm>
#include <span>
#include <vector>

#include "backend/cpu/kernels/sum_rows.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/stream.h"
#include "core/checked.h"
#include "core/cluster_members.h"

namespace nearwise::cpu {
namespace {

constexpr std::size_t piece_rows = cluster_piece_rows;

// Consecutive members of a large cluster.
struct Piece {
  std::size_t cluster = 0;
  std::size_t first = 0;  // index into args.members
  std::size_t count = 0;
};

class Means {
 public:
  Means(CpuStream& cpu, const CentroidMeansArgs& args)
      : cpu_(cpu),
        args_(args),
        padded_dim_(round_up(args.rows.dim(), sum_granule)),
        sum_(kernel_of(cpu, args)),
        pieces_(pieces_of(args)),
        piece_sums_(cpu.budget(), pieces_.size() * padded_dim_),
        piece_errors_(cpu.budget(), pieces_.size()) {}

  void run() {
    cpu_.threads().for_each(pieces_.size(), [&](std::size_t index) {
      cpu_.context.cancel.check();
      Buffer<double> centre(cpu_.budget(), padded_dim_);
      const Piece& piece = pieces_[index];
      piece_errors_[index] = sum(piece, centre.data(), piece_sums_.data() + index * padded_dim_);
    });
    // A task sums the clusters that begin within its range of members.
    const std::size_t tasks = args_.members.size() / piece_rows + 1;
    cpu_.threads().for_each(tasks, [&](std::size_t task) {
      cpu_.context.cancel.check();
      Buffer<double> centre(cpu_.budget(), padded_dim_);
      Buffer<double> sums(cpu_.budget(), padded_dim_);
      for (std::size_t c = first_cluster(task); c < first_cluster(task + 1); ++c)
        finish(c, centre.data(), sums.data());
    });
  }

 private:
  static SumRowsKernels::Function kernel_of(const CpuStream& cpu, const CentroidMeansArgs& args) {
    const SumRowsKernels& kernels = sum_rows_kernels(cpu.set);
    const auto type = static_cast<std::size_t>(args.rows.type());
    return args.metric == Metric::cosine ? kernels.to_unit_length[type] : kernels.as_given[type];
  }

  static std::size_t begin_of(const CentroidMeansArgs& args, std::size_t cluster) {
    return cluster == 0 ? 0 : args.ends[cluster - 1];
  }

  static std::vector<Piece> pieces_of(const CentroidMeansArgs& args) {
    std::vector<Piece> pieces;
    for (std::size_t c = 0; c < args.ends.size(); ++c) {
      const std::size_t begin = begin_of(args, c);
      if (args.ends[c] - begin <= piece_rows) continue;
      for (std::size_t first = begin; first < args.ends[c]; first += piece_rows)
        pieces.push_back({c, first, std::min<std::size_t>(piece_rows, args.ends[c] - first)});
    }
    return pieces;
  }

  // First cluster that begins at or after the start of the task's range.
  std::size_t first_cluster(std::size_t task) const {
    if (task == 0) return 0;
    // Cluster c + 1 begins where c ends.
    const auto found = std::ranges::lower_bound(args_.ends, task * piece_rows);
    return std::min<std::size_t>(static_cast<std::size_t>(found - args_.ends.begin()) + 1, args_.ends.size());
  }

  double sum(const Piece& piece, double* centre, double* sums) const {
    std::fill_n(centre, padded_dim_, 0.0);
    std::fill_n(sums, padded_dim_, 0.0);
    std::ranges::copy(args_.centroids.row(piece.cluster), centre);
    return sum_({.base = args_.rows.data(),
                 .stride_bytes = args_.rows.stride_bytes(),
                 .dim = args_.rows.dim(),
                 .rows = args_.members.data() + piece.first,
                 .count = piece.count,
                 .centre = centre,
                 .sums = sums});
  }

  void finish(std::size_t cluster, double* centre, double* sums) {
    const std::size_t begin = begin_of(args_, cluster);
    const std::size_t size = args_.ends[cluster] - begin;
    if (size <= piece_rows) {
      args_.errors[cluster] = sum({cluster, begin, size}, centre, sums);
    } else {
      std::fill_n(sums, padded_dim_, 0.0);
      args_.errors[cluster] = 0;
      auto piece = std::ranges::lower_bound(pieces_, cluster, {}, &Piece::cluster);
      for (; piece != pieces_.end() && piece->cluster == cluster; ++piece) {
        const auto index = static_cast<std::size_t>(piece - pieces_.begin());
        args_.errors[cluster] += piece_errors_[index];
        for (std::size_t i = 0; i < padded_dim_; ++i) sums[i] += piece_sums_[index * padded_dim_ + i];
      }
    }
    write_mean(cluster, size, sums);
  }

  void write_mean(std::size_t cluster, std::size_t size, const double* sums) const {
    const std::span<const double> sum(sums, args_.rows.dim());
    if (args_.sums.rows() != 0) std::ranges::copy(sum, args_.sums.row(cluster).begin());
    centroid_from_sum(sum, size, args_.metric, args_.centroids.row(cluster), args_.means.row(cluster));
  }

  CpuStream& cpu_;
  const CentroidMeansArgs& args_;
  const std::size_t padded_dim_;
  const SumRowsKernels::Function sum_;
  const std::vector<Piece> pieces_;
  Buffer<double> piece_sums_;    // [pieces, padded_dim]
  Buffer<double> piece_errors_;  // [pieces]
};

}  // namespace

std::uint64_t centroid_means_bytes(const Stream& stream, std::size_t rows, std::size_t dim) {
  const std::size_t padded_dim = round_up(dim, sum_granule);
  const std::size_t max_pieces = rows / piece_rows * 2;
  return buffer_bytes(max_pieces * padded_dim, sizeof(double)) + buffer_bytes(max_pieces, sizeof(double)) +
         static_cast<std::uint64_t>(cpu_stream(stream).threads().count()) * 2 *
             buffer_bytes(padded_dim, sizeof(double));
}

void centroid_means(Stream& stream, const CentroidMeansArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  sort_by_cluster(args.nearest, args.members, args.ends);
  cpu.context.cancel.check();
  Means(cpu, args).run();
}

}  // namespace nearwise::cpu

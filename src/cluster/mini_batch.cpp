// Mini-batch k-means (Sculley 2010) with weights that grow with the batch number.
//
// Batch t has weight t^2: with equal weights, rows of early batches slow a centroid down; with exponential
// decay it never converges (docs/algorithms/kmeans.md has measurements).
#include "cluster/mini_batch.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "backend/stages.h"
#include "cluster/centroid_search.h"
#include "cluster/draw_rows.h"
#include "cluster/random_streams.h"
#include "cluster/row_values.h"
#include "cluster/training.h"
#include "core/checked.h"
#include "core/memory.h"
#include "ops/finite_rows.h"

namespace nearwise::cluster {
namespace {

// Rows per block: several pages of a file, yet few enough that a batch covers many places.
constexpr std::size_t block_rows = 64;
// Batches whose errors are averaged for the convergence test: each batch has other rows.
constexpr std::size_t averaged_batches = 5;
// Lloyd iterations on the first batch, for initial centroids.
constexpr std::size_t start_iterations = 8;

std::size_t row_bytes_of(const RowsView& rows) { return rows.dim() * element_size(rows.type()); }
std::size_t block_count(std::size_t batch_size) { return divide_up(batch_size, block_rows); }

KMeansOptions start_options(const KMeansOptions& options) {
  return {.metric = options.metric,
          .iterations = start_iterations,
          .tolerance = 1e-3,
          .seeding = options.seeding};
}

CentroidSearchArgs search_args(const RowsView& batch, std::size_t clusters, Metric metric) {
  return {.rows = batch, .max_centroids = clusters, .metric = metric};
}

class Batch {
 public:
  Batch(const Context& context, const RowsView& rows, std::size_t batch_size)
      : context_(context),
        rows_(rows),
        batch_rows_(batch_size),
        values_(*context.state().budget, batch_size * row_bytes_of(rows)) {}

  RowsView read(std::size_t number) {
    const std::vector<RowBlock> blocks = blocks_of_batch(context_.seed(), rows_.rows(), batch_rows_, number);
    const std::size_t row_bytes = row_bytes_of(rows_);
    std::size_t count = 0;
    for (const RowBlock& block : blocks) {
      context_.state().cancel.check();
      check_finite("train_kmeans", context_, rows_.slice(block.first, block.count), block.first);
      for (std::size_t row = block.first; row < block.first + block.count; ++row)
        std::memcpy(values_.data() + count++ * row_bytes, rows_.row(row), row_bytes);
    }
    return {values_.data(), rows_.type(), count, rows_.dim(), row_bytes};
  }

 private:
  const Context& context_;
  const RowsView rows_;
  const std::size_t batch_rows_;
  Buffer<std::byte> values_;
};

// Buffers that live through all batches.
class MiniBatches {
 public:
  MiniBatches(const Context& context, const RowsView& rows, std::size_t clusters,
              const KMeansOptions& options)
      : context_(context),
        rows_(rows),
        options_(options),
        result_bytes_(budget(), result_bytes(rows, clusters)),
        batch_(context, rows, *options.batch_size),
        centroids_(clusters, rows.dim()),
        sizes_(clusters, 0) {}

  static std::uint64_t result_bytes(const RowsView& rows, std::size_t clusters) {
    return buffer_bytes(checked_multiply(clusters, rows.dim(), "train_kmeans"), sizeof(float)) +
           clusters * sizeof(std::size_t);
  }

  // Additional buffers while batches are processed.
  static std::uint64_t looking_bytes(const Context& context, const RowsView& batch, std::size_t clusters,
                                     Metric metric) {
    const auto stream = open_stream(context);
    return buffer_bytes(clusters * batch.dim(), sizeof(float)) +
           2 * buffer_bytes(batch.rows(), sizeof(std::uint32_t)) +
           3 * buffer_bytes(clusters, sizeof(double)) + buffer_bytes(batch.dim(), sizeof(double)) +
           std::max(
               CentroidSearch::min_bytes(context, search_args(batch, clusters, metric)),
               dispatch(&Ops::centroid_means_bytes, "centroid_means", *stream, batch.rows(), batch.dim()));
  }

  KMeans run() {
    Stages stages(context_, "train_kmeans");
    const RowsView batch = rows_.slice(0, *options_.batch_size);
    const double batch_cost = assignment_cost(batch, centroids_.rows());
    const double start_cost =
        options_.initial.rows() != 0 ? 0 : training_cost(batch, centroids_.rows(), start_options(options_));
    start(stages.next(start_cost, static_cast<double>(options_.iterations) * batch_cost));
    const auto stream = open_stream(context_);
    Looking looking(budget(), *options_.batch_size, centroids_.rows(), rows_.dim());
    KMeans result;
    while (result.errors.size() < options_.iterations && !result.converged) {
      const std::size_t number = result.errors.size() + 1;
      const Context context = stages.next(1, static_cast<double>(options_.iterations - number));
      const RowsView rows = batch_.read(number);
      look(*stream, context, rows, looking);
      const double error = std::accumulate(looking.errors.data(), looking.errors.data() + sizes_.size(), 0.0);
      result.errors.push_back(error / static_cast<double>(rows.rows()) * static_cast<double>(rows_.rows()));
      result.converged = error == 0 || has_settled(result.errors);
      move(number, looking);
    }
    result.sizes = std::move(sizes_);
    result.centroids = std::move(centroids_);
    stages.finish();
    return result;
  }

 private:
  struct Looking {
    Looking(MemoryBudget& budget, std::size_t rows, std::size_t clusters, std::size_t dim)
        : means(budget, clusters * dim),
          nearest(budget, rows),
          members(budget, rows),
          ends(budget, clusters),
          errors(budget, clusters),
          weights(budget, clusters),
          scratch(budget, dim) {
      std::ranges::fill(weights.span(), 0.0);
    }

    Buffer<float> means;  // [clusters, dim]
    Buffer<std::uint32_t> nearest;
    Buffer<std::uint32_t> members;
    Buffer<std::uint64_t> ends;  // [clusters]
    Buffer<double> errors;       // [clusters]
    Buffer<double> weights;      // [clusters] of the rows so far, in rows of the last batch
    Buffer<double> scratch;      // [dim]
  };

  MemoryBudget& budget() const { return *context_.state().budget; }

  void start(const Context& context) {
    if (options_.initial.rows() != 0) {
      Buffer<double> scratch(budget(), rows_.dim());
      for (std::size_t c = 0; c < centroids_.rows(); ++c)
        row_to_centroid(options_.initial, c, options_.metric, scratch.span(), centroids_.row(c));
      return;
    }
    const KMeans first = train(context, batch_.read(0), centroids_.rows(), start_options(options_));
    std::copy_n(first.centroids.data(), centroids_.rows() * rows_.dim(), centroids_.data());
  }

  // Assigns the rows of a batch and computes means.
  void look(Stream& stream, const Context& context, const RowsView& rows, Looking& looking) const {
    const auto nearest = looking.nearest.span().first(rows.rows());
    ProgressMeter progress(context.state().options.progress, context.state().clock, "train_kmeans",
                           std::uint64_t{rows.rows()} * centroids_.rows());
    CentroidSearch(context_, search_args(rows, centroids_.rows(), options_.metric))
        .nearest(centroids_, nearest, {}, &progress);
    dispatch(
        &Ops::centroid_means, "centroid_means", stream,
        CentroidMeansArgs{.rows = rows,
                          .nearest = nearest,
                          .centroids = centroids_,
                          .metric = options_.metric,
                          .means = MatrixView<float>(looking.means.data(), centroids_.rows(), rows_.dim()),
                          .members = looking.members.span().first(rows.rows()),
                          .ends = looking.ends.span(),
                          .errors = looking.errors.span()});
  }

  void move(std::size_t number, Looking& looking) {
    // Ratio of the weights of consecutive batches: t^2 / (t - 1)^2.
    const double share = static_cast<double>(number - 1) / static_cast<double>(number);
    for (std::size_t c = 0; c < centroids_.rows(); ++c) {
      const std::size_t size = looking.ends[c] - (c == 0 ? 0 : looking.ends[c - 1]);
      looking.weights[c] = looking.weights[c] * share * share + static_cast<double>(size);
      sizes_[c] += size;
      if (size == 0) continue;
      const double rate = static_cast<double>(size) / looking.weights[c];
      const auto centroid = centroids_.row(c);
      const float* const mean = looking.means.data() + c * rows_.dim();
      for (std::size_t i = 0; i < centroid.size(); ++i) {
        const auto before = static_cast<double>(centroid[i]);
        looking.scratch[i] = before + rate * (static_cast<double>(mean[i]) - before);
      }
      if (is_spherical(options_.metric)) scale_to_unit(looking.scratch.span());
      for (std::size_t i = 0; i < centroid.size(); ++i) centroid[i] = static_cast<float>(looking.scratch[i]);
    }
  }

  bool has_settled(const std::vector<double>& errors) const {
    if (errors.size() < 2 * averaged_batches) return false;
    const auto last = errors.end() - averaged_batches;
    const double sum = std::accumulate(last, errors.end(), 0.0);
    const double before = std::accumulate(last - averaged_batches, last, 0.0);
    return before - sum <= options_.tolerance * sum;
  }

  const Context& context_;
  const RowsView rows_;
  const KMeansOptions& options_;
  const Reservation result_bytes_;
  Batch batch_;
  Matrix<float> centroids_;
  std::vector<std::size_t> sizes_;
};

}  // namespace

std::vector<RowBlock> blocks_of_batch(std::uint64_t seed, std::size_t rows, std::size_t batch_size,
                                      std::size_t batch) {
  const Random random = random_stream(seed, Draw::batches, batch);
  const std::size_t count = block_count(batch_size);
  std::vector<RowBlock> blocks;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = begin_of_part(rows, count, i);
    const std::size_t part = begin_of_part(rows, count, i + 1) - begin;
    const std::size_t wanted = begin_of_part(batch_size, count, i + 1) - begin_of_part(batch_size, count, i);
    const std::size_t size = std::min(wanted, part);
    blocks.push_back({begin + random.below(i, part - size + 1), size});
  }
  return blocks;
}

std::uint64_t mini_batch_bytes(const Context& context, const RowsView& rows, std::size_t clusters,
                               const KMeansOptions& options) {
  const RowsView batch = rows.slice(0, *options.batch_size);
  const std::uint64_t starting = options.initial.rows() == 0
                                     ? training_bytes(context, batch, clusters, start_options(options))
                                     : buffer_bytes(rows.dim(), sizeof(double));
  return MiniBatches::result_bytes(rows, clusters) +
         buffer_bytes(checked_multiply(*options.batch_size, row_bytes_of(rows), "train_kmeans"), 1) +
         block_count(*options.batch_size) * sizeof(RowBlock) +
         std::max(starting, MiniBatches::looking_bytes(context, batch, clusters, options.metric));
}

KMeans train_mini_batches(const Context& context, const RowsView& rows, std::size_t clusters,
                          const KMeansOptions& options) {
  const Reservation blocks(*context.state().budget, block_count(*options.batch_size) * sizeof(RowBlock));
  return MiniBatches(context, rows, clusters, options).run();
}

}  // namespace nearwise::cluster

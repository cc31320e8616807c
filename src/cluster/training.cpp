#include "cluster/training.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "backend/stages.h"
#include "cluster/balance.h"
#include "cluster/centroid_search.h"
#include "cluster/convergence.h"
#include "cluster/row_values.h"
#include "cluster/seeding.h"
#include "cluster/split.h"
#include "core/checked.h"

namespace nearwise::cluster {
namespace {

// Buffers that live through all iterations.
class Training {
 public:
  Training(const Context& context, const RowsView& rows, std::size_t clusters, const KMeansOptions& options)
      : context_(context),
        rows_(rows),
        options_(options),
        result_bytes_(*context.state().budget, result_bytes(rows, clusters)),
        centroids_(clusters, rows.dim()),
        means_(budget(), clusters * rows.dim()),
        nearest_(budget(), rows.rows()),
        members_(budget(), rows.rows()),
        distances_(budget(), is_balanced(options) ? rows.rows() : 0),
        ends_(budget(), clusters),
        errors_(budget(), clusters) {}

  static std::uint64_t result_bytes(const RowsView& rows, std::size_t clusters) {
    return buffer_bytes(checked_multiply(clusters, rows.dim(), "train_kmeans"), sizeof(float)) +
           clusters * sizeof(std::size_t);
  }
  static std::uint64_t bytes(const RowsView& rows, std::size_t clusters, const KMeansOptions& options) {
    return result_bytes(rows, clusters) + buffer_bytes(clusters * rows.dim(), sizeof(float)) +
           2 * buffer_bytes(rows.rows(), sizeof(std::uint32_t)) +
           buffer_bytes(is_balanced(options) ? rows.rows() : 0, sizeof(float)) +
           2 * buffer_bytes(clusters, sizeof(double));
  }

  KMeans run() {
    Stages stages(context_, "train_kmeans");
    const double iteration_cost = assignment_cost(rows_, centroids_.rows());
    start(stages.next(start_cost(rows_, centroids_.rows(), options_),
                      static_cast<double>(options_.iterations) * iteration_cost));
    const auto stream = open_stream(context_);
    // Reserved for means and splits, which run between searches.
    Reservation between(budget(), between_bytes(context_, rows_, centroids_.rows(), options_));
    CentroidSearch search(context_, search_args(rows_, centroids_.rows(), options_));
    KMeans result;
    bool unsettled = false;  // the next error may rise
    for (std::size_t iteration = 0; iteration < options_.iterations && !result.converged; ++iteration) {
      const double expected =
          expected_iterations(result.errors, options_.tolerance, options_.iterations - iteration);
      const Context assigning = stages.next(1, expected - 1);
      ProgressMeter progress(assigning.state().options.progress, assigning.state().clock, "train_kmeans",
                             std::uint64_t{rows_.rows()} * centroids_.rows());
      search.nearest(centroids_, nearest_.span(), distances_.span(), &progress);
      between = Reservation();
      if (is_balanced(options_)) balance();
      take_means(*stream);
      const double error = std::accumulate(errors_.data(), errors_.data() + errors_.size(), 0.0);
      result.converged = error == 0 || (!unsettled && !result.errors.empty() &&
                                        fall(result.errors.back(), error) <= options_.tolerance * error);
      result.errors.push_back(error);
      const bool last = result.converged || iteration + 1 == options_.iterations;
      // Rows of a moved centroid get a farther one, unless only empty clusters are moved.
      if (!last) unsettled = split(iteration) > 0 && options_.min_cluster_size > 1;
      between = Reservation(budget(), between_bytes(context_, rows_, centroids_.rows(), options_));
    }
    for (std::size_t c = 0; c < ends_.size(); ++c)
      result.sizes.push_back(ends_[c] - (c == 0 ? 0 : ends_[c - 1]));
    result.centroids = std::move(centroids_);
    stages.finish();
    return result;
  }

  static double start_cost(const RowsView& rows, std::size_t clusters, const KMeansOptions& options) {
    return options.initial.rows() == 0 ? seeding_cost(rows, clusters, options) : 0;
  }

  static CentroidSearchArgs search_args(const RowsView& rows, std::size_t clusters,
                                        const KMeansOptions& options) {
    return {
        .rows = rows, .max_centroids = clusters, .metric = options.metric, .distances = is_balanced(options)};
  }
  // Needed between searches.
  static std::uint64_t between_bytes(const Context& context, const RowsView& rows, std::size_t clusters,
                                     const KMeansOptions& options) {
    const auto stream = open_stream(context);
    return std::max({dispatch(&Ops::centroid_means_bytes, "centroid_means", *stream, rows.rows(), rows.dim()),
                     split_bytes(context, clusters, rows.dim()),
                     is_balanced(options)
                         ? balance_bytes(context, rows, clusters, ElementType::f32, options.metric)
                         : 0});
  }

 private:
  static bool is_balanced(const KMeansOptions& options) { return options.balance.has_value(); }
  MemoryBudget& budget() const { return *context_.state().budget; }

  // The change of the error. With bounded clusters it may rise and converge from both sides.
  double fall(double before, double error) const {
    return is_balanced(options_) ? std::abs(before - error) : before - error;
  }

  void balance() {
    balance_clusters(context_,
                     {.rows = rows_,
                      .centroids = centroids_,
                      .metric = options_.metric,
                      .max_rows = max_cluster_rows(rows_.rows(), centroids_.rows(), *options_.balance),
                      .nearest = nearest_.span(),
                      .distances = distances_.span(),
                      .scratch = members_.span()});
  }

  void start(const Context& context) {
    if (options_.initial.rows() == 0) {
      seed_centroids(context, rows_, options_, centroids_.view());
      return;
    }
    Buffer<double> scratch(budget(), rows_.dim());
    for (std::size_t c = 0; c < centroids_.rows(); ++c)
      row_to_centroid(options_.initial, c, options_.metric, scratch.span(), centroids_.row(c));
  }

  void take_means(Stream& stream) {
    const MatrixView<float> means(means_.data(), centroids_.rows(), rows_.dim());
    dispatch(&Ops::centroid_means, "centroid_means", stream,
             CentroidMeansArgs{.rows = rows_,
                               .nearest = nearest_.span(),
                               .centroids = centroids_,
                               .metric = options_.metric,
                               .means = means,
                               .members = members_.span(),
                               .ends = ends_.span(),
                               .errors = errors_.span()});
    std::copy_n(means_.data(), means_.size(), centroids_.data());
  }

  std::size_t split(std::size_t iteration) {
    return split_clusters(context_, {.rows = rows_,
                                     .metric = options_.metric,
                                     .min_cluster_size = options_.min_cluster_size,
                                     .members = members_.span(),
                                     .ends = ends_.span(),
                                     .errors = errors_.span(),
                                     .round = iteration,
                                     .centroids = centroids_.view()});
  }

  const Context& context_;
  const RowsView rows_;
  const KMeansOptions& options_;
  const Reservation result_bytes_;
  Matrix<float> centroids_;
  Buffer<float> means_;            // [clusters, dim]
  Buffer<std::uint32_t> nearest_;  // [rows]
  Buffer<std::uint32_t> members_;  // [rows] row numbers by cluster
  Buffer<float> distances_;        // [rows] if clusters are bounded
  Buffer<std::uint64_t> ends_;     // [clusters]
  Buffer<double> errors_;          // [clusters]
};

}  // namespace

std::uint64_t training_bytes(const Context& context, const RowsView& rows, std::size_t clusters,
                             const KMeansOptions& options) {
  const std::uint64_t iterating =
      CentroidSearch::min_bytes(context, Training::search_args(rows, clusters, options)) +
      Training::between_bytes(context, rows, clusters, options);
  const std::uint64_t seeding = options.initial.rows() == 0 ? seeding_bytes(context, rows, clusters, options)
                                                            : buffer_bytes(rows.dim(), sizeof(double));
  return Training::bytes(rows, clusters, options) + std::max(iterating, seeding);
}

double training_cost(const RowsView& rows, std::size_t clusters, const KMeansOptions& options) {
  return Training::start_cost(rows, clusters, options) +
         static_cast<double>(options.iterations) * assignment_cost(rows, clusters);
}

KMeans train(const Context& context, const RowsView& rows, std::size_t clusters,
             const KMeansOptions& options) {
  return Training(context, rows, clusters, options).run();
}

}  // namespace nearwise::cluster

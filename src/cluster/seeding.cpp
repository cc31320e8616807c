// k-means++ (Arthur and Vassilvitskii 2007) on a sample, drawn in batches as k-means|| does (Bahmani and
// others 2012).
//
// Drawing one row at a time reads the whole sample for every centroid. Only the first 64 are drawn so; later
// ones come in batches of an eighth of those drawn, by an exponential race without replacement: 4,096
// centroids take 100 rounds.
#include "cluster/seeding.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "backend/stages.h"
#include "cluster/centroid_search.h"
#include "cluster/draw_rows.h"
#include "cluster/random_streams.h"
#include "cluster/row_values.h"
#include "cluster/training.h"
#include "core/checked.h"
#include "core/lost_pages.h"
#include "ops/finite_rows.h"
#include "ops/gather_rows.h"

namespace nearwise::cluster {
namespace {

// Sampled rows per centroid.
constexpr std::size_t sample_rows_per_centroid = 32;
constexpr std::size_t task_rows = 4096;

// A stratified sample, or all rows if they are few.
class Sample {
 public:
  Sample(const Context& context, const RowsView& rows, std::size_t clusters)
      : rows_(rows), gathered_(*context.state().budget, copied_bytes(rows, clusters)) {
    if (gathered_.size() == 0) return;
    const std::size_t count = size(rows, clusters);
    const Random random = random_stream(context.seed(), Draw::sample);
    const auto placed = [&](std::size_t i) {
      return PlacedRow{draw_from_part(random, rows.rows(), count, i), i};
    };
    gather_rows(context, rows, count, placed, gathered_.data());
    rows_ = RowsView(gathered_.data(), rows.type(), count, rows.dim(), row_bytes_of(rows));
  }

  static std::size_t size(const RowsView& rows, std::size_t clusters) {
    return std::min(rows.rows(), checked_multiply(clusters, sample_rows_per_centroid,
                                                  "train_kmeans: the rows to draw centroids from"));
  }
  static std::size_t copied_bytes(const RowsView& rows, std::size_t clusters) {
    const std::size_t count = size(rows, clusters);
    return count == rows.rows() ? 0 : count * rows.dim() * element_size(rows.type());
  }
  const RowsView& rows() const { return rows_; }

 private:
  RowsView rows_;
  Buffer<std::byte> gathered_;
};

// Rows of one batch are drawn independently: few enough that they are seldom close to each other.
constexpr std::size_t drawn_one_by_one = 64;
constexpr std::size_t batch_share = 8;

std::size_t batch_after(std::size_t chosen, std::size_t clusters) {
  return std::min(chosen < drawn_one_by_one ? 1 : chosen / batch_share, clusters - chosen);
}

// The metric of the draw: cosine for spherical metrics.
Metric seeding_metric(Metric metric) { return is_spherical(metric) ? Metric::cosine : Metric::sqeuclidean; }

CentroidSearchArgs search_args(const RowsView& sample, std::size_t clusters, Metric metric) {
  return {.rows = sample,
          .max_centroids = std::max<std::size_t>(1, clusters / batch_share),
          .metric = seeding_metric(metric),
          .distances = true};
}

struct Arrival {
  double time = 0;
  std::uint32_t row = 0;  // of the sample
  friend bool operator<(const Arrival& left, const Arrival& right) {
    return std::pair(left.time, left.row) < std::pair(right.time, right.row);
  }
};

class PlusPlus {
 public:
  PlusPlus(const Context& context, const RowsView& sample, Metric metric, MatrixView<float> centroids)
      : context_(context),
        sample_(sample),
        metric_(metric),
        centroids_(centroids),
        weights_(budget(), sample.rows()),
        distances_(budget(), sample.rows()),
        nearest_(budget(), sample.rows()),
        arrivals_(budget(), sample.rows()),
        scratch_(budget(), sample.dim()),
        search_(context, search_args(sample, centroids.rows(), metric)) {
    // A zero row cannot be a spherical centroid.
    for_each_row(
        [&](std::size_t row) { weights_[row] = is_spherical(metric) && is_zero(sample, row) ? 0.0F : 1.0F; });
  }

  void run() {
    ProgressMeter progress(context_.state().options.progress, context_.state().clock, "train_kmeans",
                           std::uint64_t{sample_.rows()} * centroids_.rows());
    std::uint64_t round = 0;
    for (std::size_t chosen = 0; chosen < centroids_.rows();) {
      const std::size_t batch = batch_after(chosen, centroids_.rows());
      draw(batch, round++);
      for (std::size_t i = 0; i < batch; ++i)
        row_to_centroid(sample_, arrivals_[i].row, metric_, scratch_.span(), centroids_.row(chosen + i));
      search_.nearest(centroids_.slice(chosen, batch), nearest_.span(), distances_.span(), &progress);
      for_each_row([&](std::size_t row) {
        const bool first = chosen == 0 && weights_[row] > 0;
        weights_[row] = first ? distances_[row] : std::min(weights_[row], distances_[row]);
      });
      // Rounding may leave a drawn row at a small distance from its centroid.
      for (std::size_t i = 0; i < batch; ++i) weights_[arrivals_[i].row] = 0;
      chosen += batch;
    }
  }

 private:
  MemoryBudget& budget() const { return *context_.state().budget; }

  // The first `count` arrivals. Rows of weight 0 come last. Logarithms are slow, and so is ordering all rows:
  // only rows that may be among the first, by bounds of their times, are candidates.
  void draw(std::size_t count, std::uint64_t round) {
    const Random random = random_stream(context_.seed(), Draw::seeds, round);
    const double limit = latest_of_some(random, count);
    const std::size_t rows = sample_.rows();
    std::vector<std::size_t> kept(divide_up(rows, task_rows));
    context_.state().threads->for_each(kept.size(), [&](std::size_t task) {
      context_.state().cancel.check();
      Arrival* next = arrivals_.data() + task * task_rows;
      for (std::size_t row = task * task_rows; row < std::min(rows, (task + 1) * task_rows); ++row)
        if (earliest_arrival(random, row, weights_[row]) <= limit)
          *next++ = {arrival_time(random, row, weights_[row]), static_cast<std::uint32_t>(row)};
      kept[task] = static_cast<std::size_t>(next - arrivals_.data()) - task * task_rows;
    });
    Arrival* const first = arrivals_.data();
    Arrival* end = first;
    for (std::size_t task = 0; task < kept.size(); ++task)
      end = std::move(first + task * task_rows, first + task * task_rows + kept[task], end);
    std::nth_element(first, first + count - 1, end);
    std::sort(first, first + count);
  }

  // A time at which `count` rows have arrived.
  double latest_of_some(const Random& random, std::size_t count) {
    constexpr std::size_t rows_per_draw = 16;
    const std::size_t some = std::min(sample_.rows(), std::max(task_rows, rows_per_draw * count));
    for_each(some, [&](std::size_t row) {
      arrivals_[row] = {latest_arrival(random, row, weights_[row]), static_cast<std::uint32_t>(row)};
    });
    std::nth_element(arrivals_.data(), arrivals_.data() + count - 1, arrivals_.data() + some);
    constexpr double margin = 1 + 1e-9;  // for the rounding of times and bounds
    return arrivals_[count - 1].time * margin;
  }

  void for_each_row(const auto& work) const { for_each(sample_.rows(), work); }

  void for_each(std::size_t count, const auto& work) const {
    context_.state().threads->for_each(divide_up(count, task_rows), [&](std::size_t task) {
      context_.state().cancel.check();
      for (std::size_t i = task * task_rows; i < std::min(count, (task + 1) * task_rows); ++i) work(i);
    });
  }

  const Context& context_;
  const RowsView sample_;
  const Metric metric_;
  const MatrixView<float> centroids_;
  Buffer<float> weights_;  // [sample rows] squared distance from the nearest row drawn
  Buffer<float> distances_;
  Buffer<std::uint32_t> nearest_;
  Buffer<Arrival> arrivals_;
  Buffer<double> scratch_;
  CentroidSearch search_;
};

// Lloyd iterations on the sample, each much cheaper than one on all rows. SIFT 1M, 1,024 and 4,096 clusters:
// without them ten iterations end 0.1 to 0.2 % above those from random seeds.
constexpr std::size_t sample_iterations = 8;

KMeansOptions sample_options(const KMeansOptions& options, RowsView centroids) {
  return {.metric = options.metric, .iterations = sample_iterations, .tolerance = 1e-3, .initial = centroids};
}

void improve_on_sample(const Context& context, const RowsView& sample, const KMeansOptions& options,
                       MatrixView<float> centroids) {
  const KMeans better = train(context, sample, centroids.rows(), sample_options(options, centroids));
  std::copy_n(better.centroids.data(), centroids.rows() * centroids.cols(), centroids.data());
}

// The few rows drawn at a time are compared less efficiently than all centroids at once.
double drawing_cost(const RowsView& rows, std::size_t clusters) {
  constexpr double relative_to_assignment = 4;
  return relative_to_assignment * assignment_cost(rows.slice(0, Sample::size(rows, clusters)), clusters);
}

double improvement_cost(const RowsView& rows, std::size_t clusters, const KMeansOptions& options) {
  const RowsView sample = rows.slice(0, Sample::size(rows, clusters));
  if (sample.rows() == rows.rows()) return 0;
  return training_cost(sample, clusters, sample_options(options, rows.slice(0, clusters)));
}

// A stratified sample of as many rows as centroids, without repetition.
void seed_randomly(const RowsView& rows, Metric metric, std::uint64_t seed, std::span<double> scratch,
                   MatrixView<float> centroids) {
  const Random random = random_stream(seed, Draw::seeds);
  for (std::size_t c = 0; c < centroids.rows(); ++c)
    row_to_centroid(rows, draw_from_part(random, rows.rows(), centroids.rows(), c), metric, scratch,
                    centroids.row(c));
}

}  // namespace

void check_sample(const char* operation, const Context& context, const RowsView& rows, std::size_t clusters,
                  const KMeansOptions& options) {
  const bool random_rows = options.seeding == Seeding::random;
  const std::size_t count = random_rows ? clusters : Sample::size(rows, clusters);
  const Random random = random_stream(context.seed(), random_rows ? Draw::seeds : Draw::sample);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t row = draw_from_part(random, rows.rows(), count, i);
    check_finite(operation, context, rows.slice(row, 1), row);
  }
}

std::uint64_t seeding_bytes(const Context& context, const RowsView& rows, std::size_t clusters,
                            const KMeansOptions& options) {
  const std::uint64_t scratch = buffer_bytes(rows.dim(), sizeof(double));
  if (options.seeding == Seeding::random) return scratch;
  const std::size_t sample = Sample::size(rows, clusters);
  const std::uint64_t drawing =
      scratch + buffer_bytes(sample, 2 * sizeof(float) + sizeof(std::uint32_t) + sizeof(Arrival)) +
      4 * buffer_bytes(0, 1) +
      CentroidSearch::min_bytes(context, search_args(rows.slice(0, sample), clusters, options.metric));
  const std::uint64_t improving = sample == rows.rows()
                                      ? 0
                                      : training_bytes(context, rows.slice(0, sample), clusters,
                                                       sample_options(options, rows.slice(0, clusters)));
  return buffer_bytes(Sample::copied_bytes(rows, clusters), 1) + std::max(drawing, improving);
}

double seeding_cost(const RowsView& rows, std::size_t clusters, const KMeansOptions& options) {
  if (options.seeding == Seeding::random) return 0;
  return drawing_cost(rows, clusters) + improvement_cost(rows, clusters, options);
}

void seed_centroids(const Context& context, const RowsView& rows, const KMeansOptions& options,
                    MatrixView<float> centroids) {
  if (options.seeding == Seeding::random) {
    Buffer<double> scratch(*context.state().budget, rows.dim());
    seed_randomly(rows, options.metric, context.seed(), scratch.span(), centroids);
    check_lost_pages();
    return;
  }
  const Sample sample(context, rows, centroids.rows());
  const RowsView drawn = sample.rows();
  const double improving_cost = improvement_cost(rows, centroids.rows(), options);
  Stages stages(context, "train_kmeans");
  const Context drawing = stages.next(drawing_cost(rows, centroids.rows()), improving_cost);
  PlusPlus(drawing, drawn, options.metric, centroids).run();
  if (drawn.rows() < rows.rows())
    improve_on_sample(stages.next(improving_cost, 0), drawn, options, centroids);
  stages.finish();
}

}  // namespace nearwise::cluster

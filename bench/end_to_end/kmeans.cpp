// Iterations of k-means relative to the bare sgemm calls of the same shape, interleaved.
//
//   kmeans [--clusters K,...] [--iterations I] [--blas LIBRARY]
//
// The product multiplies all rows by the centroids in f32, as in exact_vs_sgemm. One round is: product, I
// iterations from the same centroids, product. `ratio` is the time of one iteration, assignment and means,
// over that of the product. Seeding is measured separately. With `--blas none` only whole trainings are
// measured. Output: one JSON object per number of clusters.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/blas.h"
#include "harness/command_line.h"
#include "harness/rows.h"
#include "harness/timing.h"
#include "nearwise/nearwise.h"

namespace {

using namespace nearwise;

struct Run {
  double seconds = 0;
  KMeans trained;
};

Run timed(const Context& context, const RowsView& rows, std::size_t clusters, const KMeansOptions& options) {
  bench::let_threads_rest();
  Run run;
  run.seconds = bench::seconds([&] { run.trained = train_kmeans(context, rows, clusters, options); });
  return run;
}

// One iteration relative to the product of the same shape.
nlohmann::json against_product(const Context& context, bench::Blas& blas, const RowsView& rows,
                               KMeansOptions options, const Matrix<float>& centroids, std::size_t repeat) {
  const Matrix<float> float_rows = bench::to_floats(rows);
  const bench::Tile tile = blas.best_tile(float_rows, centroids);
  const auto product = [&] {
    bench::let_threads_rest();
    return bench::seconds([&] { blas.products(float_rows, centroids, tile); });
  };
  options.initial = centroids;
  std::vector<double> products, noise, iterations, ratios;
  for (std::size_t round = 0; round < repeat; ++round) {
    const double before = product();
    const Run run = timed(context, rows, centroids.rows(), options);
    const double after = product();
    iterations.push_back(run.seconds / static_cast<double>(run.trained.errors.size()));
    products.push_back((before + after) / 2);
    noise.push_back(after / before);
    ratios.push_back(iterations.back() / products.back());
  }
  return {{"blas", blas.name()},
          {"blas_version", blas.version()},
          {"tile", {tile.queries, tile.rows}},
          {"sgemm_seconds", products},
          {"sgemm_against_itself", noise},
          {"iteration_seconds", iterations},
          {"us_per_row", bench::median(iterations) / static_cast<double>(rows.rows()) * 1e6},
          {"ratios", ratios},
          {"ratio", bench::median(ratios)},
          {"spread", bench::spread(ratios)}};
}

nlohmann::json measure(const bench::Options& options, const Context& context, const RowsView& rows,
                       std::size_t clusters) {
  const std::size_t repeat = options.repeat(5);
  const KMeansOptions kmeans = {
      .metric = options.metric(), .iterations = options.number("iterations", 10), .tolerance = 0};
  KMeansOptions once = kmeans;
  once.iterations = 1;
  const Run start = timed(context, rows, clusters, once);  // warms up, too
  nlohmann::json report = bench::shape_of(rows, context);
  report.update({{"metric", name(kmeans.metric)},
                 {"clusters", clusters},
                 {"seeding_and_one_iteration_seconds", start.seconds}});
  for (std::size_t round = 0; round < repeat; ++round) {
    const Run whole = timed(context, rows, clusters, kmeans);
    report["whole_seconds"].push_back(whole.seconds);
    report["errors"] = whole.trained.errors;
  }
  const std::string blas = options.text("blas", "libopenblas.so.0");
  if (blas == "none") return report;
  bench::Blas library(blas, context.threads());
  report.update(against_product(context, library, rows, kmeans, start.trained.centroids, repeat));
  return report;
}

void run(const bench::Options& options) {
  const bench::OwnedRows rows = bench::load_rows(options);
  const Context context = options.context();
  for (const std::size_t clusters : options.numbers("clusters", "1024"))
    bench::print(measure(options, context, rows, clusters));
}

}  // namespace

int main(int count, char** arguments) {
  return nearwise::bench::run_program(count, arguments, {"clusters", "iterations", "blas"}, run);
}

// Iterations of k-means against the bare sgemm calls of the same shape, in one run, interleaved.
//
//   kmeans [--rows N] [--dim D] [--data uniform|normal|clusters|offset] [--base FILE] [--type T] [--clusters K,...]
//          [--iterations I] [--metric M] [--threads T] [--isa NAME] [--repeat R] [--blas LIBRARY]
//
// The product multiplies all rows by as many centroids, in f32, as exact_vs_sgemm does it; its result is thrown away. One
// round is: product, I iterations from the same centroids, product. `ratio` is the time of one iteration, assignment and
// means, over the product's. Seeding is measured apart. Output: one JSON object per number of clusters.
#include <fmt/format.h>

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

bench::OwnedRows load_rows(const bench::Options& options, ElementType type) {
  if (!options.has("base")) return std::move(bench::generated(options, type).base);
  const VectorFile file = VectorFile::open(options.text("base", ""));
  const std::size_t rows = std::min(file.rows().rows(), options.number("rows", SIZE_MAX));
  return bench::converted(file.rows().slice(0, rows), type);
}

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

nlohmann::json measure(const bench::Options& options, const Context& context, bench::Blas& blas,
                       const RowsView& rows, const Matrix<float>& float_rows, std::size_t clusters) {
  const std::size_t repeat = options.number("repeat", 5);
  KMeansOptions kmeans = {.metric = parse_metric(options.text("metric", "sqeuclidean")),
                          .iterations = options.number("iterations", 10),
                          .tolerance = 0};
  const Run seeded = timed(context, rows, clusters, kmeans);
  KMeansOptions once = kmeans;
  once.iterations = 1;
  const Run start = timed(context, rows, clusters, once);
  kmeans.initial = start.trained.centroids;

  const Matrix<float>& centroids = start.trained.centroids;
  const bench::Tile tile = blas.best_tile(float_rows, centroids);
  const auto product = [&] {
    bench::let_threads_rest();
    return bench::seconds([&] { blas.products(float_rows, centroids, tile); });
  };
  std::vector<double> products, noise, iterations, ratios;
  for (std::size_t round = 0; round < repeat; ++round) {
    const double before = product();
    const Run run = timed(context, rows, clusters, kmeans);
    const double after = product();
    iterations.push_back(run.seconds / static_cast<double>(run.trained.errors.size()));
    products.push_back((before + after) / 2);
    noise.push_back(after / before);
    ratios.push_back(iterations.back() / products.back());
  }
  return {{"version", version()},
          {"rows", rows.rows()},
          {"dim", rows.dim()},
          {"type", name(rows.type())},
          {"metric", name(kmeans.metric)},
          {"clusters", clusters},
          {"threads", context.threads()},
          {"isa", context.isa()},
          {"blas", blas.name()},
          {"blas_version", blas.version()},
          {"tile", {tile.queries, tile.rows}},
          {"sgemm_seconds", products},
          {"sgemm_against_itself", noise},
          {"iteration_seconds", iterations},
          {"us_per_row", bench::median(iterations) / static_cast<double>(rows.rows()) * 1e6},
          {"ratios", ratios},
          {"ratio", bench::median(ratios)},
          {"spread", bench::spread(ratios)},
          {"whole_seconds", seeded.seconds},
          {"seeding_and_one_iteration_seconds", start.seconds},
          {"errors", seeded.trained.errors}};
}

void run(const bench::Options& options) {
  if (options.number("repeat", 5) == 0) throw std::runtime_error("--repeat must be at least 1");
  const auto threads = static_cast<int>(options.number("threads", 2));
  const bench::OwnedRows data = load_rows(options, parse_element_type(options.text("type", "f32")));
  const RowsView rows = data;
  const Matrix<float> float_rows = bench::converted<float>(rows);
  bench::Blas blas(options.text("blas", "libopenblas.so.0"), threads);
  const Context context = Context::cpu({.threads = threads, .isa = options.text("isa", "")});
  for (const std::size_t clusters : options.numbers("clusters", "1024"))
    fmt::print("{}\n", measure(options, context, blas, rows, float_rows, clusters).dump());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argc,
         argv,
         {"rows", "dim", "data", "base", "type", "clusters", "iterations", "metric", "threads", "isa",
          "repeat", "blas"}});
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "kmeans: {}\n", error.what());
    return 1;
  }
}

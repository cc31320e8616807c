// Exact search relative to the bare sgemm calls of the same shape, interleaved.
//
//   exact_vs_sgemm [--k K,...] [--blas LIBRARY]
//
// The search gets base and queries in their element type, sgemm the same numbers in f32. LIBRARY is any
// shared library with cblas_sgemm; it gets the same threads and the best of several tile shapes. One round
// is: product, a search for each k, product. `ratio` is the time of the search over that of the product,
// `speedup` its inverse; at the top level for the first k. Output: one JSON object.
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

// The bare rate of the products in the search, which changes by a factor of three on shared machines.
nlohmann::json scan_rates(const std::string& isa) {
  nlohmann::json rates;
  for (const ScanInfo& scan : measure_scans(isa))
    rates[fmt::format("{} as {}", name(scan.rows), scan.multiplied_as)] = scan.gflops;
  return rates;
}

struct Measured {
  std::size_t k = 0;
  std::vector<double> seconds = {};
  std::vector<double> ratios = {};  // search over the mean of the products before and after
};

nlohmann::json report_of(const Measured& measured, double flops) {
  const double ratio = bench::median(measured.ratios);
  return {{"k", measured.k},
          {"own_seconds", measured.seconds},
          {"own_gflops", flops / bench::median(measured.seconds) * 1e-9},
          {"ratios", measured.ratios},
          {"ratio", ratio},
          {"speedup", 1 / ratio},
          {"spread", bench::spread(measured.ratios)}};
}

void run(const bench::Options& options) {
  const std::size_t repeat = options.repeat(5);
  const KnnOptions knn_options = {.metric = options.metric()};
  std::vector<Measured> measured;
  for (const std::size_t k : options.numbers("k", "10")) measured.push_back({.k = k});

  const bench::Data data = bench::load_data(options);
  const RowsView base = data.base;
  const RowsView queries = data.queries;
  const Matrix<float> float_base = bench::to_floats(base);
  const Matrix<float> float_queries = bench::to_floats(queries);
  const Context context = options.context();
  bench::Blas blas(options.text("blas", "libopenblas.so.0"), context.threads());

  const bench::Tile tile = blas.best_tile(float_queries, float_base);
  const auto product = [&] {
    bench::let_threads_rest();
    return bench::seconds([&] { blas.products(float_queries, float_base, tile); });
  };
  const auto search = [&](std::size_t k, const RowsView& rows) {
    bench::let_threads_rest();
    return bench::seconds([&] { knn(context, queries, rows, k, knn_options); });
  };
  for (const Measured& each : measured)  // warm up
    search(each.k, base.slice(0, std::min<std::size_t>(base.rows(), std::max<std::size_t>(65536, each.k))));

  std::vector<double> before, after, noise;
  for (std::size_t round = 0; round < repeat; ++round) {
    before.push_back(product());
    for (Measured& each : measured) each.seconds.push_back(search(each.k, base));
    after.push_back(product());
    for (Measured& each : measured)
      each.ratios.push_back(each.seconds.back() / ((before.back() + after.back()) / 2));
    noise.push_back(after.back() / before.back());
  }

  const double flops = 2.0 * static_cast<double>(base.rows()) * static_cast<double>(queries.rows()) *
                       static_cast<double>(base.dim());
  nlohmann::json report = bench::shape_of(base, context);
  report.update({{"scan_gflops_per_thread", scan_rates(context.isa())},
                 {"instruction_sets", instruction_sets()},
                 {"data", data.name},
                 {"queries", queries.rows()},
                 {"metric", name(knn_options.metric)},
                 {"blas", blas.name()},
                 {"blas_version", blas.version()},
                 {"tile", {tile.queries, tile.rows}},
                 {"sgemm_seconds", before},
                 {"sgemm_again_seconds", after},
                 {"sgemm_against_itself", noise},
                 {"sgemm_gflops", flops / bench::median(before) * 1e-9}});
  report.update(report_of(measured.front(), flops));
  for (const Measured& each : measured) report["by_k"].push_back(report_of(each, flops));
  bench::print(report);
}

}  // namespace

int main(int count, char** arguments) {
  return nearwise::bench::run_program(count, arguments, {"k", "blas"}, run);
}

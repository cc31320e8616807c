// An inverted file of codes: time to build, and recall against time of a search.
//
//   ivf --base FILE --queries FILE [--truth FILE] [--rows N] [--metric M] [--lists L] [--codec pq|lsq]
//       [--code-bytes B] [--bits 4|8] [--index FILE] [--probes P,...] [--candidates C,...] [--k K] [--batch Q]
//       [--threads T] [--isa NAME] [--repeat R]
//
// Candidates 0: answers as the codes have them, without a second look at the rows. recall is the share of the true k that is
// among the k reported. Searches go in batches of Q queries (0: all at once; 1 gives latencies). Output: one JSON object for
// the build, one for every pair of probes and candidates.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/command_line.h"
#include "harness/rows.h"
#include "harness/timing.h"
#include "nearwise/nearwise.h"

namespace {

using namespace nearwise;

double recall(const Matrix<Id>& truth, const Matrix<Id>& found, std::size_t k) {
  std::size_t hits = 0;
  for (std::size_t query = 0; query < found.rows(); ++query) {
    const std::set<Id> expected(truth.row(query).begin(),
                                truth.row(query).begin() + static_cast<std::ptrdiff_t>(k));
    hits += static_cast<std::size_t>(std::count_if(found.row(query).begin(), found.row(query).end(),
                                                   [&](Id id) { return expected.contains(id); }));
  }
  return static_cast<double>(hits) / static_cast<double>(found.rows() * k);
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// Trains and fills an index; or the one that was saved under --index before, where only searching is of interest.
Ivf index_of(const Context& context, RowsView base, Metric metric, const bench::Options& options) {
  const std::string file = options.text("index", "");
  if (!file.empty() && std::filesystem::exists(file)) return load_ivf(context, file);
  std::optional<Ivf> index;
  const double train_seconds = bench::seconds([&] {
    const std::size_t lists = options.number("lists", 0);
    const std::size_t code_bytes = options.number("code-bytes", 16);
    if (options.text("codec", "pq") == "lsq")
      index.emplace(
          IvfLsq::train(context, base, {.metric = metric, .lists = lists, .code_bytes = code_bytes}));
    else
      index.emplace(IvfPq::train(context, base,
                                 {.metric = metric,
                                  .lists = lists,
                                  .code_bytes = code_bytes,
                                  .bits = static_cast<unsigned>(options.number("bits", 8))}));
  });
  const double add_seconds = bench::seconds([&] { index->add(context, base); });
  fmt::print("{}\n", nlohmann::json{{"version", version()},
                                    {"rows", base.rows()},
                                    {"dim", base.dim()},
                                    {"lists", index->lists()},
                                    {"codec", index->codec()},
                                    {"code_bytes", index->code_bytes()},
                                    {"threads", context.threads()},
                                    {"isa", context.isa()},
                                    {"train_seconds", train_seconds},
                                    {"add_seconds", add_seconds}}
                         .dump());
  if (!file.empty()) save(*index, file);
  return std::move(*index);
}

void run(const bench::Options& options) {
  const auto threads = static_cast<int>(options.number("threads", 2));
  const Context context = Context::cpu({.threads = threads, .seed = 1, .isa = options.text("isa", "")});
  const VectorFile base_file = VectorFile::open(options.text("base", ""));
  const VectorFile query_file = VectorFile::open(options.text("queries", ""));
  const RowsView base =
      base_file.rows().slice(0, std::min(base_file.rows().rows(), options.number("rows", SIZE_MAX)));
  const RowsView queries = query_file.rows();
  const std::size_t k = options.number("k", 10);
  const Metric metric = parse_metric(options.text("metric", "sqeuclidean"));
  const Neighbors truth = options.has("truth") && base.rows() == base_file.rows().rows()
                              ? read_neighbors(options.text("truth", ""))
                              : knn(context, queries, base, k, {.metric = metric});

  Ivf index = index_of(context, base, metric, options);

  const std::size_t batch = options.number("batch", 0) == 0 ? queries.rows() : options.number("batch", 0);
  for (const std::size_t probes : options.numbers("probes", "16"))
    for (const std::size_t candidates : options.numbers("candidates", "100")) {
      const IvfSearchOptions search = {
          .probes = probes, .rows = candidates != 0 ? base : RowsView(), .candidates = candidates};
      std::vector<double> seconds, cpu_seconds, latencies;
      double found_share = 0;
      for (std::size_t round = 0; round < options.number("repeat", 3); ++round) {
        bench::let_threads_rest();
        double sum = 0;
        double cpu_sum = 0;
        std::size_t hits = 0;
        for (std::size_t first = 0; first < queries.rows(); first += batch) {
          const RowsView part = queries.slice(first, std::min(batch, queries.rows() - first));
          Neighbors found;
          const std::clock_t start = std::clock();
          latencies.push_back(bench::seconds([&] { found = index.search(context, part, k, search); }));
          sum += latencies.back();
          cpu_sum += static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
          Matrix<Id> expected(part.rows(), k);
          for (std::size_t query = 0; query < part.rows(); ++query)
            std::copy_n(truth.ids.row(first + query).begin(), k, expected.row(query).begin());
          hits += static_cast<std::size_t>(
              std::llround(recall(expected, found.ids, k) * static_cast<double>(part.rows() * k)));
        }
        seconds.push_back(sum);
        cpu_seconds.push_back(cpu_sum);
        found_share = static_cast<double>(hits) / static_cast<double>(queries.rows() * k);
      }
      fmt::print(
          "{}\n",
          nlohmann::json{
              {"probes", probes},
              {"candidates", candidates},
              {"k", k},
              {"batch", batch},
              {"recall", found_share},
              {"queries_per_second", static_cast<double>(queries.rows()) / bench::median(seconds)},
              {"queries_per_cpu_second", static_cast<double>(queries.rows()) / bench::median(cpu_seconds)},
              {"seconds", seconds},
              {"latency_p50_us", quantile(latencies, 0.5) * 1e6},
              {"latency_p99_us", quantile(latencies, 0.99) * 1e6}}
              .dump());
    }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argc,
         argv,
         {"base", "queries", "truth", "rows", "metric", "lists", "codec", "code-bytes", "bits", "index",
          "probes", "candidates", "k", "batch", "threads", "isa", "repeat"}});
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "ivf: {}\n", error.what());
    return 1;
  }
}

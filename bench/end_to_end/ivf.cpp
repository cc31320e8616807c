// An inverted file of codes: time to build, and recall and time of searches.
//
//   ivf --base FILE --queries FILE [--lists L] [--codec pq|lsq] [--code-bytes B] [--bits 4|8] [--index FILE]
//       [--probes P,...] [--candidates C,...] [--rerank index|rows] [--k K] [--batch Q]
//
// Candidates 0: no re-ranking. --rerank rows: by the base instead of the vectors in the index. recall: share
// of the true k neighbours among the k reported. Queries are searched in batches of Q (0: one batch; 1: gives
// latencies). --index: the index is loaded from FILE if it exists, else saved there. Output: one JSON object
// for the build, one for every pair of probes and candidates.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/command_line.h"
#include "harness/rows.h"
#include "harness/timing.h"
#include "nearwise/nearwise.h"

namespace {

using namespace nearwise;

// True neighbours among the answers to the queries from `first` on.
std::size_t count_hits(const Neighbors& truth, std::size_t first, const Neighbors& found) {
  std::size_t hits = 0;
  for (std::size_t query = 0; query < found.ids.rows(); ++query)
    for (const Id id : truth.ids.row(first + query))
      hits += std::ranges::count(found.ids.row(query), id) != 0 ? 1 : 0;
  return hits;
}

Ivf index_of(const Context& context, const RowsView& base, const bench::Options& options) {
  const std::string file = options.text("index", "");
  if (!file.empty() && std::filesystem::exists(file)) return load_ivf(context, file);
  std::optional<Ivf> index;
  const double train_seconds = bench::seconds([&] {
    const std::size_t code_bytes = options.number("code-bytes", 16);
    IvfOptions wanted = {
        .metric = options.metric(),
        .encoding = Pq{.code_bytes = code_bytes, .bits = static_cast<unsigned>(options.number("bits", 8))}};
    if (options.has("lists")) wanted.lists = options.number("lists", 0);
    if (options.text("codec", "pq") == "lsq") wanted.encoding = Lsq{.code_bytes = code_bytes};
    index.emplace(Ivf::train(context, base, wanted));
  });
  const double add_seconds = bench::seconds([&] { index->add(context, base); });
  nlohmann::json report = bench::shape_of(base, context);
  report.update({{"lists", index->lists()},
                 {"codec", index->encoding()},
                 {"code_bytes", index->code_bytes()},
                 {"train_seconds", train_seconds},
                 {"add_seconds", add_seconds}});
  bench::print(report);
  if (!file.empty()) save(*index, file);
  return std::move(*index);
}

struct Round {
  double seconds = 0;
  double cpu_seconds = 0;
  std::size_t hits = 0;
};

void run(const bench::Options& options) {
  const Context context = options.context(1);
  const VectorFile base_file = VectorFile::open(options.text("base", ""));
  const VectorFile query_file = VectorFile::open(options.text("queries", ""));
  const RowsView base =
      base_file.rows().slice(0, std::min(base_file.rows().rows(), options.number("rows", SIZE_MAX)));
  const RowsView queries = query_file.rows();
  const std::size_t k = options.number("k", 10);
  const Neighbors truth = knn(context, queries, base, k, {.metric = options.metric()});
  const Ivf index = index_of(context, base, options);

  const std::size_t batch = options.number("batch", 0) == 0 ? queries.rows() : options.number("batch", 0);
  for (const std::size_t probes : options.numbers("probes", "16"))
    for (const std::size_t candidates : options.numbers("candidates", "100")) {
      IvfSearchOptions search = {.probes = probes, .codes_only = candidates == 0};
      // By the vectors that the index keeps, or by those that it was built from.
      if (candidates != 0 && options.text("rerank", "index") == "rows") search.rerank = base;
      if (candidates != 0) search.candidates = candidates;
      std::vector<double> seconds, cpu_seconds, latencies;
      Round round;
      for (std::size_t number = 0; number < options.repeat(3); ++number) {
        bench::let_threads_rest();
        round = {};
        for (std::size_t first = 0; first < queries.rows(); first += batch) {
          const RowsView part = queries.slice(first, std::min(batch, queries.rows() - first));
          Neighbors found;
          const bench::Times times = bench::timed([&] { found = index.search(context, part, k, search); });
          latencies.push_back(times.seconds);
          round.seconds += times.seconds;
          round.cpu_seconds += times.cpu_seconds;
          round.hits += count_hits(truth, first, found);
        }
        seconds.push_back(round.seconds);
        cpu_seconds.push_back(round.cpu_seconds);
      }
      const auto count = static_cast<double>(queries.rows());
      bench::print({{"probes", probes},
                    {"candidates", candidates},
                    {"k", k},
                    {"batch", batch},
                    {"recall", static_cast<double>(round.hits) / (count * static_cast<double>(k))},
                    {"queries_per_second", count / bench::median(seconds)},
                    {"queries_per_cpu_second", count / bench::median(cpu_seconds)},
                    {"seconds", seconds},
                    {"latency_p50_us", bench::quantile(latencies, 0.5) * 1e6},
                    {"latency_p99_us", bench::quantile(latencies, 0.99) * 1e6}});
    }
}

}  // namespace

int main(int count, char** arguments) {
  return nearwise::bench::run_program(
      count, arguments,
      {"lists", "codec", "code-bytes", "bits", "index", "probes", "candidates", "k", "batch"}, run);
}

// One query at a time relative to reading the base: a search for one query reads every byte once, so that the
// memory bandwidth bounds it.
//
//   one_query [--k K] [--queries Q] [--prepared 1]
//
// --prepared 1: the base is prepared once (Exact), which may keep a shorter form of it than is read here.
//
// One round is: Q sums over all bytes of the base with the same number of threads, then Q queries one by one.
// `share` is the bytes per second of the search over those of the sum. Output: one JSON object.
#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "harness/command_line.h"
#include "harness/reading.h"
#include "harness/rows.h"
#include "harness/timing.h"
#include "nearwise/nearwise.h"

namespace {

using namespace nearwise;

// Reads all bytes `passes` times; threads are started once.
void read_all(const std::byte* bytes, std::size_t count, int threads, std::size_t passes,
              std::atomic<std::uint64_t>& sink) {
  std::vector<std::jthread> workers;
  const std::size_t part = count / static_cast<std::size_t>(threads);
  for (std::size_t thread = 0; thread < static_cast<std::size_t>(threads); ++thread)
    workers.emplace_back([=, &sink] {
      for (std::size_t pass = 0; pass < passes; ++pass) sink += bench::sum_of({bytes + thread * part, part});
    });
}

void run(const bench::Options& options) {
  const std::size_t k = options.number("k", 10);
  const KnnOptions knn_options = {.metric = options.metric()};
  const bench::Data data = bench::load_data(options);
  const RowsView base = data.base;
  const RowsView all_queries = data.queries;
  const RowsView queries = all_queries.slice(0, std::min(all_queries.rows(), options.number("queries", 20)));
  const Context context = options.context();

  const std::size_t bytes = base.rows() * base.dim() * element_size(base.type());
  const double scanned = static_cast<double>(bytes) * static_cast<double>(queries.rows());
  std::atomic<std::uint64_t> sink = 0;
  const auto read = [&] { read_all(base.data(), bytes, context.threads(), queries.rows(), sink); };
  std::optional<Exact> prepared;
  if (options.number("prepared", 0) != 0)
    prepared = Exact::prepare(context, base, {.metric = knn_options.metric});
  const auto search = [&] {
    for (std::size_t query = 0; query < queries.rows(); ++query) {
      const RowsView one = queries.slice(query, 1);
      prepared ? prepared->search(context, one, k) : knn(context, one, base, k, knn_options);
    }
  };
  read();
  search();
  std::vector<double> read_rates, search_rates, shares, noise;
  for (std::size_t round = 0; round < options.repeat(5); ++round) {
    const double before = bench::seconds(read);
    const double own = bench::seconds(search);
    const double after = bench::seconds(read);
    const double read_rate = scanned / ((before + after) / 2);
    read_rates.push_back(read_rate * 1e-9);
    search_rates.push_back(scanned / own * 1e-9);
    shares.push_back(scanned / own / read_rate);
    noise.push_back(after / before);
  }
  nlohmann::json report = bench::shape_of(base, context);
  report.update(
      {{"data", data.name},
       {"metric", name(knn_options.metric)},
       {"k", k},
       {"queries", queries.rows()},
       {"prepared", prepared.has_value()},
       {"read_gigabytes_per_second", read_rates},
       {"search_gigabytes_per_second", search_rates},
       {"shares", shares},
       {"share", bench::median(shares)},
       {"spread", bench::spread(shares)},
       {"read_against_itself", noise},
       {"milliseconds_per_query", static_cast<double>(bytes) / bench::median(search_rates) * 1e-6}});
  bench::print(report);
}

}  // namespace

int main(int count, char** arguments) {
  return nearwise::bench::run_program(count, arguments, {"k", "prepared"}, run);
}

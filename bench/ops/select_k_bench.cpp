// select_k on one thread relative to reading the same rows once, interleaved.
//
//   select_k_bench [--columns N] [--cached-rows R] [--streamed-rows R] [--order largest]
//
// Reading is a sum of all bits, which no selection can beat. Two levels of memory: a few rows that stay in
// the caches, and more rows than they hold. Two distributions: sums of four uniform numbers (distances
// concentrate like them) and exponential ones. Output: one JSON object; `ratio` is the median of the time of
// select_k over the mean of the two readings around it, `reading_against_itself` its noise.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "harness/command_line.h"
#include "harness/reading.h"
#include "harness/timing.h"
#include "nearwise/nearwise.h"

namespace {

using namespace nearwise;

enum class Data { uniform_sums, exponential };

// xorshift: 50 million numbers in a moment.
Matrix<float> make_rows(Data data, std::size_t rows, std::size_t columns) {
  Matrix<float> out(rows, columns);
  std::uint32_t state = 7;
  const auto uniform = [&] {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return static_cast<float>(state >> 8) * 0x1p-24F;
  };
  for (std::size_t i = 0; i < rows * columns; ++i)
    out.data()[i] =
        data == Data::uniform_sums ? uniform() + uniform() + uniform() + uniform() : -std::log1p(-uniform());
  return out;
}

nlohmann::json measure(const Context& context, MatrixView<const float> rows, std::size_t k, Order order,
                       std::size_t repeat) {
  std::vector<double> selecting, reading, ratios, noise;
  volatile std::uint64_t sink = 0;
  const auto read = [&] {
    sink = bench::sum_of(std::as_bytes(std::span(rows.data(), rows.rows() * rows.cols())));
  };
  for (std::size_t i = 0; i < repeat + 2; ++i) {
    const double before = bench::seconds(read);
    const double own = bench::seconds([&] { select_k(context, rows, k, {.order = order}); });
    const double after = bench::seconds(read);
    if (i < 2) continue;  // warming up
    selecting.push_back(own);
    reading.push_back((before + after) / 2);
    ratios.push_back(own / reading.back());
    noise.push_back(after / before);
  }
  const double to_microseconds = 1e6 / static_cast<double>(rows.rows());
  const auto quartiles = [](const std::vector<double>& values) {
    return nlohmann::json{bench::quantile(values, 0.25), bench::median(values),
                          bench::quantile(values, 0.75)};
  };
  return {{"k", k},
          {"rows", rows.rows()},
          {"ratio", bench::median(ratios)},
          {"ratio_quartiles", quartiles(ratios)},
          {"microseconds_per_row", bench::median(selecting) * to_microseconds},
          {"reading_microseconds_per_row", bench::median(reading) * to_microseconds},
          {"reading_against_itself", quartiles(noise)}};
}

void run(const bench::Options& options) {
  const std::size_t columns = options.number("columns", 128'000);
  const std::size_t cached_rows = options.number("cached-rows", 8);
  const std::size_t streamed_rows = options.number("streamed-rows", 400);
  const std::size_t repeat = options.repeat(15);
  const Order order = options.text("order", "smallest") == "largest" ? Order::largest : Order::smallest;
  const Context context = Context::cpu({.threads = 1, .isa = options.text("isa", "")});
  nlohmann::json results = nlohmann::json::array();
  for (const Data data : {Data::uniform_sums, Data::exponential}) {
    const Matrix<float> rows = make_rows(data, std::max(cached_rows, streamed_rows), columns);
    for (const bool cached : {true, false})
      for (const std::size_t k : {10, 100, 1000}) {
        const std::size_t count = cached ? cached_rows : streamed_rows;
        // Cached rows take little time: more repetitions.
        nlohmann::json result =
            measure(context, rows.view().slice(0, count), k, order, cached ? 20 * repeat : repeat);
        result["data"] = data == Data::uniform_sums ? "uniform_sums" : "exponential";
        result["level"] = cached ? "cached" : "streamed";
        results.push_back(result);
      }
  }
  bench::print({{"columns", columns},
                {"isa", context.isa()},
                {"order", options.text("order", "smallest")},
                {"results", results}});
}

}  // namespace

int main(int count, char** arguments) {
  return nearwise::bench::run_program(count, arguments, {"columns", "cached-rows", "streamed-rows", "order"},
                                      run);
}

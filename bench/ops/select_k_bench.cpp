// select_k on one thread against reading the same rows once, interleaved, in one run.
//
//   select_k_bench [--columns N] [--cached-rows R] [--streamed-rows R] [--repeat R] [--isa NAME] [--order largest]
//
// Reading is a vector minimum: what no selection can beat. Two levels of memory: a few rows that stay in the caches,
// and more rows than they hold. Two kinds of data: sums of four uniform numbers (as distances concentrate) and
// exponential ones. Output: one JSON object; `ratio` is the median over repetitions of select_k's time by the mean of
// the two readings around it, `reading_against_itself` says how much of it is noise.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nearwise/nearwise.h"

namespace {

using nearwise::Matrix;
using nearwise::MatrixView;

using Lanes __attribute__((vector_size(64))) = float;

// Compiled for several instruction sets, so that it runs at the machine's own width.
__attribute__((target_clones("avx512f", "avx2", "default"))) float least_value(const float* values,
                                                                               std::size_t count) {
  constexpr std::size_t width = sizeof(Lanes) / sizeof(float);
  constexpr std::size_t unrolled = 8;
  Lanes least[unrolled];
  for (Lanes& lanes : least) lanes = Lanes{} + HUGE_VALF;
  std::size_t i = 0;
  for (; i + unrolled * width <= count; i += unrolled * width)
    for (std::size_t u = 0; u < unrolled; ++u) {
      Lanes x;
      __builtin_memcpy(&x, values + i + u * width, sizeof(x));
      least[u] = x < least[u] ? x : least[u];
    }
  float result = HUGE_VALF;
  for (const Lanes& lanes : least)
    for (std::size_t lane = 0; lane < width; ++lane) result = std::min(result, lanes[lane]);
  for (; i < count; ++i) result = std::min(result, values[i]);
  return result;
}

float read_rows(MatrixView<const float> rows) {
  float least = HUGE_VALF;
  for (std::size_t row = 0; row < rows.rows(); ++row)
    least = std::min(least, least_value(rows.row(row).data(), rows.cols()));
  return least;
}

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

double seconds(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Spread {
  double median, low, high;  // the quartiles about the median
};

Spread spread(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t last = values.size() - 1;
  return {values[last / 2], values[last / 4], values[last - last / 4]};
}

nlohmann::json measure(const nearwise::Context& context, MatrixView<const float> rows, std::size_t k,
                       nearwise::Order order, std::size_t repeat) {
  std::vector<double> selecting, reading, ratios, noise;
  volatile float sink = 0;
  for (std::size_t i = 0; i < repeat + 2; ++i) {
    const double before = seconds([&] { sink = read_rows(rows); });
    const double own = seconds([&] { select_k(context, rows, k, {.order = order}); });
    const double after = seconds([&] { sink = read_rows(rows); });
    if (i < 2) continue;  // warming up
    selecting.push_back(own);
    reading.push_back((before + after) / 2);
    ratios.push_back(own / reading.back());
    noise.push_back(after / before);
  }
  const double to_microseconds = 1e6 / static_cast<double>(rows.rows());
  const Spread ratio = spread(ratios);
  const Spread self = spread(noise);
  return {{"k", k},
          {"rows", rows.rows()},
          {"ratio", ratio.median},
          {"ratio_quartiles", {ratio.low, ratio.high}},
          {"microseconds_per_row", spread(selecting).median * to_microseconds},
          {"reading_microseconds_per_row", spread(reading).median * to_microseconds},
          {"reading_against_itself", {self.low, self.median, self.high}}};
}

int run(const std::map<std::string, std::string>& options) {
  const auto number = [&](const char* name, std::size_t fallback) {
    const auto found = options.find(name);
    return found == options.end() ? fallback : static_cast<std::size_t>(std::stoull(found->second));
  };
  const std::size_t columns = number("columns", 128'000);
  const std::size_t cached_rows = number("cached-rows", 8);
  const std::size_t streamed_rows = number("streamed-rows", 400);
  const std::size_t repeat = number("repeat", 15);
  const bool largest = options.contains("order") && options.at("order") == "largest";
  const nearwise::Order order = largest ? nearwise::Order::largest : nearwise::Order::smallest;
  const std::string isa = options.contains("isa") ? options.at("isa") : "";
  const auto context = nearwise::Context::cpu({.threads = 1, .isa = isa});
  nlohmann::json results = nlohmann::json::array();
  for (const Data data : {Data::uniform_sums, Data::exponential}) {
    const Matrix<float> rows = make_rows(data, std::max(cached_rows, streamed_rows), columns);
    for (const bool cached : {true, false})
      for (const std::size_t k : {10, 100, 1000}) {
        const std::size_t count = cached ? cached_rows : streamed_rows;
        // A few rows take so little time that they can be measured often.
        const std::size_t times = cached ? 20 * repeat : repeat;
        nlohmann::json result = measure(context, rows.view().slice(0, count), k, order, times);
        result["data"] = data == Data::uniform_sums ? "uniform_sums" : "exponential";
        result["level"] = cached ? "cached" : "streamed";
        results.push_back(result);
      }
  }
  const nlohmann::json report = {{"columns", columns},
                                 {"isa", context.isa()},
                                 {"order", largest ? "largest" : "smallest"},
                                 {"repeat", repeat},
                                 {"results", results}};
  fmt::print("{}\n", report.dump());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options;
  for (int i = 1; i + 1 < argc; i += 2) options[std::string(argv[i]).substr(2)] = argv[i + 1];
  try {
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "select_k_bench: {}\n", error.what());
    return 1;
  }
}

// Training, encoding and tables of a product quantizer.
//
//   product_quantizer [--rows N] [--queries Q] [--dim D] [--data uniform|normal|clusters|offset]
//                     [--base FILE --query-file FILE] [--type T] [--parts P] [--bits B] [--threads T] [--isa NAME]
//                     [--repeat R]
//
// Output: one JSON object. Times are medians of the repetitions, but for the training, which is done once.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "harness/command_line.h"
#include "harness/rows.h"
#include "harness/timing.h"
#include "nearwise/nearwise.h"

namespace {

using namespace nearwise;

double repeated_seconds(std::size_t repeat, const auto& work) {
  std::vector<double> times;
  for (std::size_t i = 0; i < repeat; ++i) times.push_back(bench::seconds(work));
  return bench::median(times);
}

nlohmann::json measure(const bench::Options& options) {
  const bench::Data data = bench::load_data(options, parse_element_type(options.text("type", "f32")));
  const RowsView rows = data.base;
  const RowsView queries = data.queries;
  const Context context = Context::cpu(
      {.threads = static_cast<int>(options.number("threads", 0)), .isa = options.text("isa", "")});
  const std::size_t repeat = options.number("repeat", 3);
  const ProductQuantizerOptions wanted = {.parts = options.number("parts", 16),
                                          .bits = static_cast<unsigned>(options.number("bits", 8))};
  std::optional<ProductQuantizer> trained;
  const double training =
      bench::seconds([&] { trained.emplace(ProductQuantizer::train(context, rows, wanted)); });
  Matrix<std::uint8_t> codes;
  const double encoding = repeated_seconds(repeat, [&] { codes = trained->encode(context, rows); });
  const double decoding = repeated_seconds(repeat, [&] { trained->decode(context, codes); });
  const double tables = repeated_seconds(repeat, [&] { trained->tables(context, queries); });
  return {{"version", version()},
          {"data", data.name},
          {"rows", rows.rows()},
          {"dim", rows.dim()},
          {"type", name(rows.type())},
          {"parts", trained->parts()},
          {"bits", trained->bits()},
          {"threads", context.threads()},
          {"isa", context.isa()},
          {"training_seconds", training},
          {"encoding_seconds", encoding},
          {"decoding_seconds", decoding},
          {"tables_us_per_query", tables / static_cast<double>(queries.rows()) * 1e6},
          {"error", trained->error(context, rows)}};
}

}  // namespace

int main(int count, char** arguments) try {
  const bench::Options options(count, arguments,
                               {"rows", "queries", "dim", "data", "base", "query-file", "type", "parts",
                                "bits", "threads", "isa", "repeat"});
  fmt::print("{}\n", measure(options).dump());
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "product_quantizer: {}\n", error.what());
  return 1;
}

// Training, encoding and search of an additive quantizer, and the recall of product quantizers of the same
// code size.
//
//   additive_quantizer [--train FILE] [--train-rows N] [--codebooks M] [--rounds R] [--train-iterations I]
//                      [--words FILE] [--iterations I,...] [--k K] [--products yes]
//
// --train: rows to train on, at most --train-rows; default: those of the base. --words: codewords, [codebooks
// * 256, dim], instead of training. --k: also searches. --products: the same with a plain and an optimized
// product quantizer, trained on the same rows. Output: one JSON object. Times are medians of the repetitions,
// except for the training; `found` is the share of queries whose nearest row, by exact search, is among the
// first 1, 10 and 100 answers; `hash` identifies the codes; `variance` is the mean squared distance of rows
// from their mean.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "backend/context_state.h"
#include "harness/command_line.h"
#include "harness/rows.h"
#include "harness/timing.h"
#include "nearwise/nearwise.h"

namespace {

using namespace nearwise;

AdditiveQuantizer with_codewords(const std::string& path) {
  const VectorFile file = VectorFile::open(path);
  const Matrix<float> codewords = bench::to_floats(file.rows());
  // Norms matter for searches only, which are not timed with given codewords.
  const std::vector<float> norms(AdditiveQuantizer::centroids, 0.0F);
  return AdditiveQuantizer::from_codebooks(codewords.cols(),
                                           {codewords.data(), codewords.rows() * codewords.cols()}, norms);
}

bench::OwnedRows training_rows(const bench::Options& options, RowsView base) {
  const std::size_t most = options.number("train-rows", 100'000);
  const auto first = [&](RowsView rows) {
    return bench::converted(rows.slice(0, std::min(most, rows.rows())), base.type());
  };
  return options.has("train") ? first(VectorFile::open(options.text("train", "")).rows()) : first(base);
}

AdditiveQuantizer trained_on(const Context& context, const bench::Options& options, RowsView rows) {
  return AdditiveQuantizer::train(context, rows,
                                  {.codebooks = options.number("codebooks", 7),
                                   .rounds = options.number("rounds", 25),
                                   .iterations = options.number("train-iterations", 8),
                                   .training_rows = rows.rows()});
}

std::string hash_of(const Matrix<std::uint8_t>& codes) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (std::size_t i = 0; i < codes.rows() * codes.cols(); ++i)
    hash = (hash ^ codes.data()[i]) * 0x100000001B3;
  return fmt::format("{:016x}", hash);
}

// The mean squared distance of the rows from their reconstructions.
double error_of(const Context& context, const AdditiveQuantizer& quantizer, RowsView rows,
                const Matrix<std::uint8_t>& codes) {
  const Matrix<float> decoded = quantizer.decode(context, codes);
  const Matrix<float> given = bench::to_floats(rows);
  double sum = 0;
  for (std::size_t i = 0; i < rows.rows() * rows.dim(); ++i) {
    const double difference = static_cast<double>(given.data()[i]) - static_cast<double>(decoded.data()[i]);
    sum += difference * difference;
  }
  return sum / static_cast<double>(rows.rows());
}

// The mean squared distance of the rows from their mean.
double variance_of(RowsView rows) {
  const Matrix<float> given = bench::to_floats(rows);
  double variance = 0;
  for (std::size_t i = 0; i < rows.dim(); ++i) {
    double sum = 0;
    double squares = 0;
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      const auto value = static_cast<double>(given(row, i));
      sum += value;
      squares += value * value;
    }
    const auto count = static_cast<double>(rows.rows());
    variance += squares / count - sum / count * (sum / count);
  }
  return variance;
}

nlohmann::json shares_found(const Neighbors& nearest, const Neighbors& found) {
  nlohmann::json shares;
  for (const std::size_t first : std::array<std::size_t, 3>{1, 10, 100}) {
    if (first > found.ids.cols()) continue;
    std::size_t count = 0;
    for (std::size_t query = 0; query < found.ids.rows(); ++query) {
      const auto row = found.ids.row(query).first(first);
      count += std::ranges::find(row, nearest.ids(query, 0)) != row.end() ? 1 : 0;
    }
    shares[std::to_string(first)] = static_cast<double>(count) / static_cast<double>(found.ids.rows());
  }
  return shares;
}

// Exhaustive search of product codes: the k smallest sums of table entries.
Neighbors search_products(const Context& context, const auto& quantizer, RowsView queries,
                          const Matrix<std::uint8_t>& codes, std::size_t k) {
  constexpr std::size_t tile = 16;
  Neighbors found{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
  Matrix<float> sums(tile, codes.rows());
  for (std::size_t first = 0; first < queries.rows(); first += tile) {
    const std::size_t count = std::min(tile, queries.rows() - first);
    const Matrix<float> tables = quantizer.tables(context, queries.slice(first, count));
    const MatrixView<float> part = sums.view().slice(0, count);
    context.state().threads->for_each(count, [&](std::size_t query) {
      for (std::size_t row = 0; row < codes.rows(); ++row) {
        float sum = 0;
        for (std::size_t byte = 0; byte < codes.cols(); ++byte)
          sum += tables(query, byte * 256 + codes(row, byte));
        part(query, row) = sum;
      }
    });
    const Selection best = select_k(context, part, k);
    std::copy_n(best.ids.data(), count * k, found.ids.row(first).data());
  }
  return found;
}

nlohmann::json product_report(const Context& context, const auto& quantizer, const bench::Data& data,
                              const Neighbors& nearest, std::size_t k) {
  const Matrix<std::uint8_t> codes = quantizer.encode(context, data.base);
  return {{"error", quantizer.error(context, data.base)},
          {"found", shares_found(nearest, search_products(context, quantizer, data.queries, codes, k))}};
}

void run(const bench::Options& options) {
  const bench::Data data = bench::load_data(options);
  const RowsView rows = data.base;
  const RowsView queries = data.queries;
  const Context context = options.context();
  const bench::OwnedRows train_rows = training_rows(options, rows);
  std::optional<AdditiveQuantizer> quantizer;
  const double training = bench::seconds([&] {
    quantizer.emplace(options.has("words") ? with_codewords(options.text("words", ""))
                                           : trained_on(context, options, train_rows));
  });
  nlohmann::json report = bench::shape_of(rows, context);
  report.update({{"data", data.name},
                 {"variance", variance_of(rows)},
                 {"codebooks", quantizer->codebooks()},
                 {"training_seconds", training}});
  const std::size_t k = options.number("k", 100);
  std::optional<Neighbors> nearest;
  if (options.has("k") && queries.rows() != 0) nearest = knn(context, queries, rows, 1);
  for (const std::size_t iterations : options.numbers("iterations", "16")) {
    Matrix<std::uint8_t> codes;
    const double seconds = bench::median_seconds(
        options.repeat(1), [&] { codes = quantizer->encode(context, rows, {.iterations = iterations}); });
    nlohmann::json encoding = {
        {"iterations", iterations},
        {"seconds", seconds},
        {"us_per_row_and_thread", seconds * context.threads() / static_cast<double>(rows.rows()) * 1e6},
        {"error", error_of(context, *quantizer, rows, codes)},
        {"hash", hash_of(codes)}};
    if (nearest) {
      std::optional<Neighbors> found;
      const double search = bench::seconds([&] { found = quantizer->search(context, queries, codes, k); });
      encoding["search_us_per_query"] = search / static_cast<double>(queries.rows()) * 1e6;
      encoding["found"] = shares_found(*nearest, *found);
    }
    report["encodings"].push_back(encoding);
  }
  if (nearest && options.has("products")) {
    const ProductQuantizerOptions wanted = {.parts = quantizer->code_bytes(),
                                            .training_rows = RowsView(train_rows).rows()};
    report["pq"] =
        product_report(context, ProductQuantizer::train(context, train_rows, wanted), data, *nearest, k);
    report["opq"] =
        product_report(context, OptimizedProductQuantizer::train(context, train_rows, {.quantizer = wanted}),
                       data, *nearest, k);
  }
  bench::print(report);
}

}  // namespace

int main(int count, char** arguments) {
  return nearwise::bench::run_program(count, arguments,
                                      {"train", "train-rows", "codebooks", "rounds", "train-iterations",
                                       "words", "iterations", "k", "products"},
                                      run);
}

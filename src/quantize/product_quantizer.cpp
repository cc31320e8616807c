// ProductQuantizer: checks the arguments, keeps the memory limit, and hands tiles of rows to the device.
#include "nearwise/product_quantizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/convert.h"
#include "core/distance.h"
#include "core/float_environment.h"
#include "ops/exact_search.h"
#include "ops/knn_plan.h"
#include "quantize/finite_rows.h"
#include "quantize/memory_limit.h"
#include "quantize/quantizer_shape.h"
#include "quantize/train_codebooks.h"
#include "quantize/training_rows.h"

namespace nearwise {
namespace {

using quantize::check_finite;
using quantize::check_memory;

// Rows that are checked and then encoded: read from memory once where the last cache is large.
constexpr std::size_t tile_rows = 65536;
// Rows of a task, and of one sum of errors: the sums are added in their order.
constexpr std::size_t task_rows = 1024;

constexpr const char* encode_name = "ProductQuantizer::encode";
constexpr const char* decode_name = "ProductQuantizer::decode";
constexpr const char* tables_name = "ProductQuantizer::tables";
constexpr const char* error_name = "ProductQuantizer::error";

Codebooks codebooks_of(const ProductQuantizer& quantizer) {
  return {quantizer.dim(), quantizer.parts(), quantizer.bits(), quantizer.codebooks()};
}

void check_dim(const char* operation, const Context& context, const RowsView& rows, std::size_t dim) {
  check_rows(operation, context, rows, rows);
  require(rows.dim() == dim, "{}: rows must have {} elements as those trained on, given {}", operation, dim,
          rows.dim());
}

void encode_tile(const Context& context, const char* operation, const RowsView& rows, std::size_t first,
                 const Codebooks& codebooks, const MatrixView<std::uint8_t>& codes, ProgressMeter* progress) {
  check_finite(operation, context, rows, first);
  const auto stream = open_stream(context);
  dispatch(&Ops::part_codes, operation, *stream,
           PartCodesArgs{.rows = rows, .codebooks = codebooks, .codes = codes, .progress = progress});
}

std::size_t code_at(std::span<const std::uint8_t> code, std::size_t part, unsigned bits) {
  if (bits == 8) return code[part];
  return part % 2 == 0 ? code[part / 2] & 15U : code[part / 2] >> 4U;
}

void decode_row(const Codebooks& codebooks, std::span<const std::uint8_t> code, float* out) {
  for (std::size_t part = 0; part < codebooks.parts; ++part) {
    const std::size_t length = codebooks.length(part);
    const float* const words = codebooks.of(part).data();
    out = std::copy_n(words + code_at(code, part, codebooks.bits) * length, length, out);
  }
}

double squared_distance(const RowsView& rows, std::size_t row, const float* decoded) {
  double lanes[distance_lanes] = {};
  visit_element_type(rows.type(), [&](auto tag) {
    for (std::size_t i = 0; i < rows.dim(); ++i) {
      const double difference =
          static_cast<double>(element<decltype(tag)>(rows.row(row), i)) - static_cast<double>(decoded[i]);
      lanes[i % distance_lanes] += difference * difference;
    }
  });
  return sum_of_lanes(lanes);
}

}  // namespace

ProductQuantizer::ProductQuantizer(std::size_t dim, std::size_t parts, unsigned bits,
                                   std::vector<float> codebooks)
    : dim_(dim), parts_(parts), bits_(bits), codebooks_(std::move(codebooks)) {}

ProductQuantizer ProductQuantizer::train(const Context& context, RowsView rows,
                                         const ProductQuantizerOptions& options) {
  constexpr const char* operation = "ProductQuantizer::train";
  const quantize::CodebookTraining training = quantize::check_training(operation, context, rows, options);
  const DefaultFloatEnvironment environment;  // bounds are computed on this thread too
  const Context::State& state = context.state();
  state.cancel.check();
  const std::size_t most_rows = quantize::most_training_rows(options);
  check_memory(
      operation, context,
      quantize::TrainingRows::bytes(rows, most_rows) +
          quantize::training_bytes(context, quantize::TrainingRows::shape(rows, most_rows), training));
  check_finite(operation, context, rows);
  const quantize::TrainingRows sample(context, rows, most_rows);
  ProgressMeter progress(state.options.progress, state.clock, operation,
                         quantize::training_pairs(sample.view(), training));
  ProductQuantizer trained(rows.dim(), training.shape.parts, training.shape.bits,
                           quantize::train_codebooks(context, sample.view(), training, progress));
  progress.finish();
  return trained;
}

ProductQuantizer ProductQuantizer::from_codebooks(std::size_t dim, std::size_t parts, unsigned bits,
                                                  std::span<const float> codebooks) {
  constexpr const char* operation = "ProductQuantizer::from_codebooks";
  quantize::check_shape(operation, dim, parts, bits);
  const std::size_t expected = checked_multiply(dim, std::size_t{1} << bits, operation);
  require(codebooks.size() == expected,
          "{}: {} numbers are expected, {} codewords of {} elements in all, given {}", operation, expected,
          std::size_t{1} << bits, dim, codebooks.size());
  const auto bad = std::ranges::find_if_not(codebooks, [](float number) { return std::isfinite(number); });
  require(bad == codebooks.end(), "{}: every number must be finite, number {} is NaN or infinity", operation,
          bad - codebooks.begin());
  return ProductQuantizer(dim, parts, bits, {codebooks.begin(), codebooks.end()});
}

std::size_t ProductQuantizer::code_bytes() const { return codebooks_of(*this).code_bytes(); }

std::size_t ProductQuantizer::part_begin(std::size_t part) const { return codebooks_of(*this).begin(part); }

std::size_t ProductQuantizer::part_dim(std::size_t part) const { return codebooks_of(*this).length(part); }

std::span<const float> ProductQuantizer::codebook(std::size_t part) const {
  require(part < parts_, "ProductQuantizer::codebook: there are {} parts, given {}", parts_, part);
  return codebooks_of(*this).of(part);
}

Matrix<std::uint8_t> ProductQuantizer::encode(const Context& context, RowsView rows) const {
  check_dim(encode_name, context, rows, dim_);
  const Context::State& state = context.state();
  state.cancel.check();
  const Codebooks codebooks = codebooks_of(*this);
  const std::uint64_t result_bytes = checked_multiply(rows.rows(), code_bytes(), encode_name);
  const auto stream = open_stream(context);
  check_memory(encode_name, context,
               result_bytes + dispatch(&Ops::part_codes_bytes, encode_name, *stream, codebooks));
  const Reservation reservation(*state.budget, result_bytes);
  Matrix<std::uint8_t> codes(rows.rows(), code_bytes());
  ProgressMeter progress(state.options.progress, state.clock, encode_name, rows.rows());
  for (std::size_t first = 0; first < rows.rows(); first += tile_rows) {
    const std::size_t count = std::min(tile_rows, rows.rows() - first);
    encode_tile(context, encode_name, rows.slice(first, count), first, codebooks,
                codes.view().slice(first, count), &progress);
  }
  progress.finish();
  return codes;
}

Matrix<float> ProductQuantizer::decode(const Context& context, MatrixView<const std::uint8_t> codes) const {
  require(codes.cols() == code_bytes(), "{}: codes must have {} bytes, given {}", decode_name, code_bytes(),
          codes.cols());
  require(codes.rows() <= 1 || codes.stride() >= codes.cols(),
          "{}: codes must not overlap, one has {} bytes and the next begins after {}", decode_name,
          codes.cols(), codes.stride());
  require(codes.place().kind == DeviceKind::cpu, "{}: codes must be on the host, given codes on {}",
          decode_name, name(codes.place()));
  const Context::State& state = context.state();
  state.cancel.check();
  const std::uint64_t result_bytes =
      buffer_bytes(checked_multiply(codes.rows(), dim_, decode_name), sizeof(float));
  check_memory(decode_name, context, result_bytes);
  const Reservation reservation(*state.budget, result_bytes);
  Matrix<float> rows(codes.rows(), dim_);
  const Codebooks codebooks = codebooks_of(*this);
  ProgressMeter progress(state.options.progress, state.clock, decode_name, codes.rows());
  state.threads->for_each(divide_up(codes.rows(), task_rows), [&](std::size_t task) {
    state.cancel.check();
    const std::size_t end = std::min(codes.rows(), (task + 1) * task_rows);
    for (std::size_t row = task * task_rows; row < end; ++row)
      decode_row(codebooks, codes.row(row), rows.row(row).data());
    progress.add(end - task * task_rows);
  });
  progress.finish();
  return rows;
}

Matrix<float> ProductQuantizer::tables(const Context& context, RowsView queries, Metric metric) const {
  check_dim(tables_name, context, queries, dim_);
  require(metric == Metric::sqeuclidean || metric == Metric::inner_product,
          "{}: the metric must be sqeuclidean or inner_product, given {} (only these add up over parts)",
          tables_name, name(metric));
  const Context::State& state = context.state();
  state.cancel.check();
  const Codebooks codebooks = codebooks_of(*this);
  const std::size_t entries = parts_ * centroids();
  const std::uint64_t result_bytes =
      buffer_bytes(checked_multiply(queries.rows(), entries, tables_name), sizeof(float));
  const auto stream = open_stream(context);
  check_memory(tables_name, context,
               result_bytes + dispatch(&Ops::part_tables_bytes, tables_name, *stream, codebooks));
  check_finite(tables_name, context, queries);
  const Reservation reservation(*state.budget, result_bytes);
  Matrix<float> tables(queries.rows(), entries);
  ProgressMeter progress(state.options.progress, state.clock, tables_name, queries.rows());
  dispatch(&Ops::part_tables, tables_name, *stream,
           PartTablesArgs{.queries = queries,
                          .codebooks = codebooks,
                          .metric = metric,
                          .tables = tables.view(),
                          .progress = &progress});
  progress.finish();
  return tables;
}

double ProductQuantizer::error(const Context& context, RowsView rows) const {
  check_dim(error_name, context, rows, dim_);
  require(rows.rows() >= 1, "{}: there must be at least 1 row, given 0", error_name);
  require(rows.place().kind == DeviceKind::cpu, "{}: rows must be on the host, given rows on {}", error_name,
          name(rows.place()));
  const Context::State& state = context.state();
  state.cancel.check();
  const Codebooks codebooks = codebooks_of(*this);
  const std::size_t tile = std::min(tile_rows, rows.rows());
  const auto threads = static_cast<std::uint64_t>(state.threads->count());
  const auto stream = open_stream(context);
  check_memory(error_name, context,
               buffer_bytes(tile * code_bytes(), 1) +
                   buffer_bytes(divide_up(tile, task_rows), sizeof(double)) +
                   std::max(dispatch(&Ops::part_codes_bytes, error_name, *stream, codebooks),
                            threads * buffer_bytes(dim_, sizeof(float))));
  Buffer<std::uint8_t> codes(*state.budget, tile * code_bytes());
  Buffer<double> sums(*state.budget, divide_up(tile, task_rows));
  ProgressMeter progress(state.options.progress, state.clock, error_name, rows.rows());
  double sum = 0;
  for (std::size_t first = 0; first < rows.rows(); first += tile_rows) {
    const RowsView part = rows.slice(first, std::min(tile_rows, rows.rows() - first));
    const MatrixView<std::uint8_t> part_codes(codes.data(), part.rows(), code_bytes());
    encode_tile(context, error_name, part, first, codebooks, part_codes, &progress);
    const std::size_t tasks = divide_up(part.rows(), task_rows);
    state.threads->for_each(tasks, [&](std::size_t task) {
      state.cancel.check();
      Buffer<float> decoded(*state.budget, dim_);
      sums[task] = 0;
      const std::size_t end = std::min(part.rows(), (task + 1) * task_rows);
      for (std::size_t row = task * task_rows; row < end; ++row) {
        decode_row(codebooks, part_codes.row(row), decoded.data());
        sums[task] += squared_distance(part, row, decoded.data());
      }
    });
    for (std::size_t task = 0; task < tasks; ++task) sum += sums[task];
  }
  progress.finish();
  return sum / static_cast<double>(rows.rows());
}

}  // namespace nearwise

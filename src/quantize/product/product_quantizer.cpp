// ProductQuantizer: argument and memory checks; passes tiles of rows to the device.
#include "nearwise/quantize/product_quantizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/float_environment.h"
#include "core/progress.h"
#include "ops/check_rows.h"
#include "ops/finite_rows.h"
#include "ops/memory_limit.h"
#include "quantize/product/coding.h"
#include "quantize/product/train_codebooks.h"
#include "quantize/quantizer_shape.h"
#include "quantize/training_rows.h"

namespace nearwise {
namespace {

constexpr const char* encode_name = "ProductQuantizer::encode";
constexpr const char* decode_name = "ProductQuantizer::decode";
constexpr const char* tables_name = "ProductQuantizer::tables";
constexpr const char* error_name = "ProductQuantizer::error";

Codebooks codebooks_of(const ProductQuantizer& quantizer) {
  return {quantizer.dim(), quantizer.parts(), quantizer.bits(), quantizer.codebooks()};
}

void check_dim(const char* operation, const Context& context, const RowsView& rows, std::size_t dim) {
  check_rows(operation, context, rows, rows);
  require(rows.dim() == dim, "{}: rows must have {} elements as in training, got {}", operation, dim,
          rows.dim());
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
  context.state().cancel.check();
  const std::size_t max_rows = quantize::max_training_rows(options);
  check_memory(
      operation, context,
      quantize::TrainingRows::bytes(rows, max_rows) +
          quantize::training_bytes(context, quantize::TrainingRows::shape(rows, max_rows), training));
  check_finite(operation, context, rows);
  const quantize::TrainingRows sample(context, rows, max_rows);
  return {rows.dim(), training.shape.parts, training.shape.bits,
          quantize::train_codebooks(context, sample.view(), training)};
}

ProductQuantizer ProductQuantizer::from_codebooks(std::size_t dim, std::size_t parts, unsigned bits,
                                                  std::span<const float> codebooks) {
  constexpr const char* operation = "ProductQuantizer::from_codebooks";
  quantize::check_shape(operation, dim, parts, bits);
  const std::size_t expected = checked_multiply(dim, std::size_t{1} << bits, operation);
  require(codebooks.size() == expected,
          "{}: {} numbers are expected, {} codewords of {} elements in all, got {}", operation, expected,
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
  require(part < parts_, "ProductQuantizer::codebook: there are {} parts, got {}", parts_, part);
  return codebooks_of(*this).of(part);
}

Matrix<std::uint8_t> ProductQuantizer::encode(const Context& context, RowsView rows) const {
  check_dim(encode_name, context, rows, dim_);
  const Context::State& state = context.state();
  state.cancel.check();
  const Codebooks codebooks = codebooks_of(*this);
  const std::uint64_t result_bytes = checked_multiply(rows.rows(), code_bytes(), encode_name);
  check_memory(encode_name, context, result_bytes + quantize::encode_bytes(encode_name, context, codebooks));
  const Reservation reservation(*state.budget, result_bytes);
  Matrix<std::uint8_t> codes(rows.rows(), code_bytes());
  ProgressMeter progress(state.options.progress, state.clock, encode_name, rows.rows());
  quantize::encode_rows(encode_name, context, rows, 0, codebooks, codes.view(), &progress);
  progress.finish();
  return codes;
}

Matrix<float> ProductQuantizer::decode(const Context& context, MatrixView<const std::uint8_t> codes) const {
  return quantize::decode_as(decode_name, context, quantize::decoder_of(codebooks_of(*this)), code_bytes(),
                             codes);
}

Matrix<float> ProductQuantizer::tables(const Context& context, RowsView queries, Metric metric) const {
  check_dim(tables_name, context, queries, dim_);
  quantize::check_table_metric(tables_name, metric);
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
  require(rows.place().kind == DeviceKind::cpu, "{}: rows must be on the host, got rows on {}", error_name,
          name(rows.place()));
  const Codebooks codebooks = codebooks_of(*this);
  return quantize::mean_error(error_name, context, rows,
                              {.code_bytes = code_bytes(),
                               .bytes = quantize::encode_bytes(error_name, context, codebooks),
                               .encode =
                                   [&](const RowsView& part, std::size_t first,
                                       const MatrixView<std::uint8_t>& codes, ProgressMeter* progress) {
                                     quantize::encode_rows(error_name, context, part, first, codebooks, codes,
                                                           progress);
                                   }},
                              quantize::decoder_of(codebooks));
}

}  // namespace nearwise

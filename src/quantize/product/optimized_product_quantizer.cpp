// OptimizedProductQuantizer: argument and memory checks; rotates and encodes rows in tiles.
#include "nearwise/quantize/optimized_product_quantizer.h"

#include <algorithm>
#include <functional>

#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/float_environment.h"
#include "core/progress.h"
#include "ops/check_rows.h"
#include "ops/finite_rows.h"
#include "ops/memory_limit.h"
#include "quantize/product/coding.h"
#include "quantize/product/optimized_training.h"
#include "quantize/quantizer_shape.h"
#include "quantize/rotation/rotating.h"
#include "quantize/training_rows.h"

namespace nearwise {
namespace {

using quantize::Direction;

// Rows rotated at a time.
constexpr std::size_t tile_rows = 16384;

constexpr const char* encode_name = "OptimizedProductQuantizer::encode";
constexpr const char* decode_name = "OptimizedProductQuantizer::decode";
constexpr const char* tables_name = "OptimizedProductQuantizer::tables";
constexpr const char* error_name = "OptimizedProductQuantizer::error";

Codebooks codebooks_of(const ProductQuantizer& quantizer) {
  return {quantizer.dim(), quantizer.parts(), quantizer.bits(), quantizer.codebooks()};
}

quantize::AxesView axes_of(const Rotation& rotation) {
  return {{rotation.matrix().data(), rotation.rotated_dim(), rotation.dim()}, rotation.mean()};
}

// The members are public, so they may not fit together.
void check_together(const char* operation, const OptimizedProductQuantizer& quantizer) {
  require(quantizer.rotation.rotated_dim() == quantizer.quantizer.dim(),
          "{}: the quantizer must have the rotation's {} dimensions, got {}", operation,
          quantizer.rotation.rotated_dim(), quantizer.quantizer.dim());
}

void check(const char* operation, const Context& context, const RowsView& rows,
           const OptimizedProductQuantizer& quantizer) {
  check_rows(operation, context, rows, rows);
  require(rows.dim() == quantizer.rotation.dim(), "{}: rows must have {} elements as in training, got {}",
          operation, quantizer.rotation.dim(), rows.dim());
  require(rows.place().kind == DeviceKind::cpu, "{}: rows must be on the host, got rows on {}", operation,
          name(rows.place()));
  check_together(operation, quantizer);
}

// Calls work(first row, rotated rows) tile by tile.
void for_each_rotated_tile(const char* operation, const Context& context, const RowsView& rows,
                           const Rotation& rotation,
                           const std::function<void(std::size_t, const RowsView&)>& work) {
  const std::size_t tile = std::min(tile_rows, rows.rows());
  Buffer<float> rotated(*context.state().budget, tile * rotation.rotated_dim());
  for (std::size_t first = 0; first < rows.rows(); first += tile_rows) {
    const RowsView part = rows.slice(first, std::min(tile_rows, rows.rows() - first));
    check_finite(operation, context, part, first);
    const MatrixView<float> out(rotated.data(), part.rows(), rotation.rotated_dim());
    quantize::rotate_rows(operation, context, part, axes_of(rotation), Direction::forward, out, nullptr);
    work(first, out);
  }
}

// Upper bound on the bytes of a tile and of the work on it.
std::uint64_t tile_bytes(const char* operation, const Context& context, const RowsView& rows,
                         const OptimizedProductQuantizer& quantizer, std::uint64_t work_bytes) {
  const std::size_t tile = std::min(tile_rows, rows.rows());
  return buffer_bytes(tile * quantizer.quantizer.dim(), sizeof(float)) +
         std::max(
             {work_bytes,
              quantize::rotate_bytes(operation, context, axes_of(quantizer.rotation), Direction::forward),
              quantize::encode_bytes(operation, context, codebooks_of(quantizer.quantizer))});
}

}  // namespace

OptimizedProductQuantizer OptimizedProductQuantizer::train(const Context& context, RowsView rows,
                                                           const OptimizedProductQuantizerOptions& options) {
  constexpr const char* operation = "OptimizedProductQuantizer::train";
  const quantize::OptimizedTraining training = {
      .operation = operation,
      .codebooks = quantize::check_training(operation, context, rows, options.quantizer),
      .rounds = options.rounds};
  const DefaultFloatEnvironment environment;
  context.state().cancel.check();
  const std::size_t max_rows = quantize::max_training_rows(options.quantizer);
  const RowsView shape = quantize::TrainingRows::shape(rows, max_rows);
  check_memory(operation, context,
               quantize::TrainingRows::bytes(rows, max_rows) +
                   quantize::optimized_training_bytes(context, shape, training));
  check_coded_range(operation, context, rows);
  const quantize::TrainingRows sample(context, rows, max_rows);
  const quantize::OptimizedCodebooks trained =
      quantize::train_optimized_codebooks(context, sample.view(), training);
  const Codebooks& codebooks = training.codebooks.shape;
  return {Rotation::from_matrix(rows.dim(), rows.dim(), trained.matrix),
          ProductQuantizer::from_codebooks(rows.dim(), codebooks.parts, codebooks.bits, trained.codewords)};
}

Matrix<std::uint8_t> OptimizedProductQuantizer::encode(const Context& context, RowsView rows) const {
  check(encode_name, context, rows, *this);
  const Context::State& state = context.state();
  state.cancel.check();
  const DefaultFloatEnvironment environment;
  const std::uint64_t result_bytes = checked_multiply(rows.rows(), quantizer.code_bytes(), encode_name);
  check_memory(encode_name, context, result_bytes + tile_bytes(encode_name, context, rows, *this, 0));
  const Reservation reservation(*state.budget, result_bytes);
  Matrix<std::uint8_t> codes(rows.rows(), quantizer.code_bytes());
  ProgressMeter progress(state.options.progress, state.clock, encode_name, rows.rows());
  for_each_rotated_tile(encode_name, context, rows, rotation,
                        [&](std::size_t first, const RowsView& rotated) {
                          quantize::encode_rows(encode_name, context, rotated, first, codebooks_of(quantizer),
                                                codes.view().slice(first, rotated.rows()), &progress);
                        });
  progress.finish();
  return codes;
}

Matrix<float> OptimizedProductQuantizer::decode(const Context& context,
                                                MatrixView<const std::uint8_t> codes) const {
  quantize::check_codes(decode_name, codes, quantizer.code_bytes());
  check_together(decode_name, *this);
  const Context::State& state = context.state();
  state.cancel.check();
  const DefaultFloatEnvironment environment;
  const std::size_t dim = quantizer.dim();
  const std::size_t tile = std::min(tile_rows, codes.rows());
  const std::uint64_t result_bytes =
      buffer_bytes(checked_multiply(codes.rows(), rotation.dim(), decode_name), sizeof(float));
  check_memory(decode_name, context,
               result_bytes + buffer_bytes(tile * dim, sizeof(float)) +
                   quantize::rotate_bytes(decode_name, context, axes_of(rotation), Direction::backward));
  const Reservation reservation(*state.budget, result_bytes);
  Matrix<float> rows(codes.rows(), rotation.dim());
  Buffer<float> decoded(*state.budget, tile * dim);
  ProgressMeter progress(state.options.progress, state.clock, decode_name, codes.rows());
  for (std::size_t first = 0; first < codes.rows(); first += tile_rows) {
    const std::size_t count = std::min(tile_rows, codes.rows() - first);
    const MatrixView<float> part(decoded.data(), count, dim);
    quantize::decode_codes(context, quantize::decoder_of(codebooks_of(quantizer)), codes.slice(first, count),
                           part, nullptr);
    quantize::rotate_rows(decode_name, context, part, axes_of(rotation), Direction::backward,
                          rows.view().slice(first, count), &progress);
  }
  progress.finish();
  return rows;
}

Matrix<float> OptimizedProductQuantizer::tables(const Context& context, RowsView queries,
                                                Metric metric) const {
  check(tables_name, context, queries, *this);
  quantize::check_table_metric(tables_name, metric);
  const Context::State& state = context.state();
  state.cancel.check();
  const DefaultFloatEnvironment environment;
  const Codebooks codebooks = codebooks_of(quantizer);
  const std::size_t entries = codebooks.parts * codebooks.count();
  const std::uint64_t result_bytes =
      buffer_bytes(checked_multiply(queries.rows(), entries, tables_name), sizeof(float));
  const auto stream = open_stream(context);
  const std::uint64_t table_bytes = dispatch(&Ops::part_tables_bytes, tables_name, *stream, codebooks);
  check_memory(tables_name, context,
               result_bytes + tile_bytes(tables_name, context, queries, *this, table_bytes));
  const Reservation reservation(*state.budget, result_bytes);
  Matrix<float> result(queries.rows(), entries);
  ProgressMeter progress(state.options.progress, state.clock, tables_name, queries.rows());
  for_each_rotated_tile(tables_name, context, queries, rotation,
                        [&](std::size_t first, const RowsView& rotated) {
                          check_finite(tables_name, context, rotated, first);
                          dispatch(&Ops::part_tables, tables_name, *stream,
                                   PartTablesArgs{.queries = rotated,
                                                  .codebooks = codebooks,
                                                  .metric = metric,
                                                  .tables = result.view().slice(first, rotated.rows()),
                                                  .progress = &progress});
                        });
  progress.finish();
  return result;
}

double OptimizedProductQuantizer::error(const Context& context, RowsView rows) const {
  check(error_name, context, rows, *this);
  require(rows.rows() >= 1, "{}: there must be at least 1 row, got 0", error_name);
  const Context::State& state = context.state();
  state.cancel.check();
  const DefaultFloatEnvironment environment;
  const Codebooks codebooks = codebooks_of(quantizer);
  const std::size_t tile = std::min(tile_rows, rows.rows());
  const std::uint64_t error_bytes = quantize::coding_error_bytes(context, tile, quantizer.dim());
  check_memory(error_name, context,
               buffer_bytes(tile * quantizer.code_bytes(), 1) +
                   tile_bytes(error_name, context, rows, *this, error_bytes));
  Buffer<std::uint8_t> codes(*state.budget, tile * quantizer.code_bytes());
  ProgressMeter progress(state.options.progress, state.clock, error_name, rows.rows());
  double sum = 0;
  for_each_rotated_tile(error_name, context, rows, rotation, [&](std::size_t first, const RowsView& rotated) {
    const MatrixView<std::uint8_t> part(codes.data(), rotated.rows(), quantizer.code_bytes());
    quantize::encode_rows(error_name, context, rotated, first, codebooks, part, &progress);
    sum += quantize::coding_error(context, rotated, quantize::decoder_of(codebooks), part);
  });
  progress.finish();
  return sum / static_cast<double>(rows.rows());
}

}  // namespace nearwise

#include "quantize/decoding.h"

#include <algorithm>

#include "backend/context_state.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/convert.h"
#include "core/distance.h"
#include "core/float_environment.h"
#include "core/memory.h"
#include "ops/memory_limit.h"
#include "quantize/quantizer_shape.h"

namespace nearwise::quantize {
namespace {

// Rows encoded at a time.
constexpr std::size_t tile_rows = 65536;
// Rows per task and partial sum; partial sums are added in order.
constexpr std::size_t task_rows = 1024;

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

void decode_codes(const Context& context, const Decoder& decoder, const MatrixView<const std::uint8_t>& codes,
                  const MatrixView<float>& rows, ProgressMeter* progress) {
  const Context::State& state = context.state();
  state.threads->for_each(divide_up(codes.rows(), task_rows), [&](std::size_t task) {
    state.cancel.check();
    const std::size_t end = std::min(codes.rows(), (task + 1) * task_rows);
    for (std::size_t row = task * task_rows; row < end; ++row)
      decoder.decode(codes.row(row), rows.row(row).data());
    if (progress != nullptr) progress->add(end - task * task_rows);
  });
}

std::uint64_t coding_error_bytes(const Context& context, std::size_t rows, std::size_t dim) {
  return buffer_bytes(divide_up(rows, task_rows), sizeof(double)) +
         static_cast<std::uint64_t>(context.state().threads->count()) * buffer_bytes(dim, sizeof(float));
}

double coding_error(const Context& context, const RowsView& rows, const Decoder& decoder,
                    const MatrixView<const std::uint8_t>& codes) {
  const Context::State& state = context.state();
  const std::size_t tasks = divide_up(rows.rows(), task_rows);
  Buffer<double> sums(*state.budget, tasks);
  state.threads->for_each(tasks, [&](std::size_t task) {
    state.cancel.check();
    Buffer<float> decoded(*state.budget, decoder.dim);
    sums[task] = 0;
    const std::size_t end = std::min(rows.rows(), (task + 1) * task_rows);
    for (std::size_t row = task * task_rows; row < end; ++row) {
      decoder.decode(codes.row(row), decoded.data());
      sums[task] += squared_distance(rows, row, decoded.data());
    }
  });
  double sum = 0;
  for (std::size_t task = 0; task < tasks; ++task) sum += sums[task];
  return sum;
}

Matrix<float> decode_as(const char* operation, const Context& context, const Decoder& decoder,
                        std::size_t code_bytes, const MatrixView<const std::uint8_t>& codes) {
  check_codes(operation, codes, code_bytes);
  const Context::State& state = context.state();
  state.cancel.check();
  const std::uint64_t result_bytes =
      buffer_bytes(checked_multiply(codes.rows(), decoder.dim, operation), sizeof(float));
  check_memory(operation, context, result_bytes);
  const Reservation reservation(*state.budget, result_bytes);
  Matrix<float> rows(codes.rows(), decoder.dim);
  ProgressMeter progress(state.options.progress, state.clock, operation, codes.rows());
  decode_codes(context, decoder, codes, rows.view(), &progress);
  progress.finish();
  return rows;
}

double mean_error(const char* operation, const Context& context, const RowsView& rows, const Encoder& encoder,
                  const Decoder& decoder) {
  require(rows.rows() >= 1, "{}: there must be at least 1 row, got 0", operation);
  const Context::State& state = context.state();
  state.cancel.check();
  const DefaultFloatEnvironment environment;  // tiles are added up on this thread
  const std::size_t tile = std::min(tile_rows, rows.rows());
  check_memory(operation, context,
               buffer_bytes(tile * encoder.code_bytes, 1) +
                   std::max(encoder.bytes, coding_error_bytes(context, tile, decoder.dim)));
  Buffer<std::uint8_t> codes(*state.budget, tile * encoder.code_bytes);
  ProgressMeter progress(state.options.progress, state.clock, operation, rows.rows());
  double sum = 0;
  for (std::size_t first = 0; first < rows.rows(); first += tile_rows) {
    const RowsView part = rows.slice(first, std::min(tile_rows, rows.rows() - first));
    const MatrixView<std::uint8_t> part_codes(codes.data(), part.rows(), encoder.code_bytes);
    encoder.encode(part, first, part_codes, &progress);
    sum += coding_error(context, part, decoder, part_codes);
  }
  progress.finish();
  return sum / static_cast<double>(rows.rows());
}

}  // namespace nearwise::quantize

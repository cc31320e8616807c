#include "quantize/coding.h"

#include <algorithm>
#include <span>

#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/convert.h"
#include "core/distance.h"
#include "core/memory.h"
#include "ops/finite_rows.h"

namespace nearwise::quantize {
namespace {

// Rows that are checked and then encoded: read from memory once where the last cache is large.
constexpr std::size_t tile_rows = 65536;
// Rows of a task, and of one sum of errors: the sums are added in their order.
constexpr std::size_t task_rows = 1024;

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

std::uint64_t encode_bytes(const char* operation, const Context& context, const Codebooks& codebooks) {
  const auto stream = open_stream(context);
  return dispatch(&Ops::part_codes_bytes, operation, *stream, codebooks);
}

void encode_rows(const char* operation, const Context& context, const RowsView& rows, std::size_t first_row,
                 const Codebooks& codebooks, const MatrixView<std::uint8_t>& codes, ProgressMeter* progress) {
  const auto stream = open_stream(context);
  for (std::size_t first = 0; first < rows.rows(); first += tile_rows) {
    const RowsView tile = rows.slice(first, std::min(tile_rows, rows.rows() - first));
    check_finite(operation, context, tile, first_row + first);
    dispatch(&Ops::part_codes, operation, *stream,
             PartCodesArgs{.rows = tile,
                           .codebooks = codebooks,
                           .codes = codes.slice(first, tile.rows()),
                           .progress = progress});
  }
}

void decode_codes(const Context& context, const Codebooks& codebooks,
                  const MatrixView<const std::uint8_t>& codes, const MatrixView<float>& rows,
                  ProgressMeter* progress) {
  const Context::State& state = context.state();
  state.threads->for_each(divide_up(codes.rows(), task_rows), [&](std::size_t task) {
    state.cancel.check();
    const std::size_t end = std::min(codes.rows(), (task + 1) * task_rows);
    for (std::size_t row = task * task_rows; row < end; ++row)
      decode_row(codebooks, codes.row(row), rows.row(row).data());
    if (progress != nullptr) progress->add(end - task * task_rows);
  });
}

std::uint64_t coding_error_bytes(const Context& context, const RowsView& rows, const Codebooks& codebooks) {
  return buffer_bytes(divide_up(rows.rows(), task_rows), sizeof(double)) +
         static_cast<std::uint64_t>(context.state().threads->count()) *
             buffer_bytes(codebooks.dim, sizeof(float));
}

double coding_error(const Context& context, const RowsView& rows, const Codebooks& codebooks,
                    const MatrixView<const std::uint8_t>& codes) {
  const Context::State& state = context.state();
  const std::size_t tasks = divide_up(rows.rows(), task_rows);
  Buffer<double> sums(*state.budget, tasks);
  state.threads->for_each(tasks, [&](std::size_t task) {
    state.cancel.check();
    Buffer<float> decoded(*state.budget, codebooks.dim);
    sums[task] = 0;
    const std::size_t end = std::min(rows.rows(), (task + 1) * task_rows);
    for (std::size_t row = task * task_rows; row < end; ++row) {
      decode_row(codebooks, codes.row(row), decoded.data());
      sums[task] += squared_distance(rows, row, decoded.data());
    }
  });
  double sum = 0;
  for (std::size_t task = 0; task < tasks; ++task) sum += sums[task];
  return sum;
}

}  // namespace nearwise::quantize

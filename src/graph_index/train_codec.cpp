#include "graph_index/train_codec.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "backend/context_state.h"
#include "core/checked.h"
#include "core/convert.h"
#include "core/distance.h"
#include "core/memory.h"

namespace nearwise::graph_index {
namespace {

constexpr std::size_t sample_rows = 8192;
// Shares of a dimension's values, at either end, that may be beyond the range of codes.
constexpr std::array<double, 4> clipped_shares = {0, 0.0002, 0.002, 0.02};
constexpr double max_byte = 255;
constexpr double max_float = std::numeric_limits<float>::max();
// Of 4-bit codes, in standard deviations: 16 steps hold 2.7 of them to either side.
constexpr double nibble_step_deviations = 0.335;
constexpr std::size_t task_rows = 4096;
// More than this is not read once more: a file may be larger than memory.
constexpr std::uint64_t max_checked_bytes = std::uint64_t{4} << 30;

// Whether all elements are integers from 0 to 255. Codes, and so edges and answers, depend on it: unlike the
// type that exact search scans (scan_type), it must not depend on the CPU.
bool holds_bytes(const Context& context, const RowsView& rows) {
  if (rows.type() != ElementType::f32 || rows.rows() * rows.stride_bytes() > max_checked_bytes) return false;
  std::atomic<bool> all{true};
  context.state().threads->for_each(divide_up(rows.rows(), task_rows), [&](std::size_t task) {
    context.state().cancel.check();
    std::vector<double> row(rows.dim());
    const std::size_t end = std::min(rows.rows(), (task + 1) * task_rows);
    for (std::size_t r = task * task_rows; r < end && all.load(std::memory_order_relaxed); ++r) {
      row_to_double(rows, r, row.data());
      const auto is_byte = [](double value) {
        return value >= 0 && value <= max_byte && value == std::floor(value);
      };
      if (!std::ranges::all_of(row, is_byte)) all.store(false, std::memory_order_relaxed);
    }
  });
  return all.load();
}

double longest_norm(const Context& context, const RowsView& rows) {
  const std::size_t tasks = divide_up(rows.rows(), task_rows);
  std::vector<double> longest(tasks, 0);
  context.state().threads->for_each(tasks, [&](std::size_t task) {
    context.state().cancel.check();
    std::vector<double> row(rows.dim());
    for (std::size_t r = task * task_rows; r < std::min(rows.rows(), (task + 1) * task_rows); ++r) {
      row_to_double(rows, r, row.data());
      double sum = 0;
      for (const double element : row) sum += element * element;
      longest[task] = std::max(longest[task], sum);
    }
  });
  return *std::ranges::max_element(longest);
}

// Squared error of codes with this offset and step, on sorted values.
double squared_error(std::span<const float> values, double offset, double step) {
  double error = 0;
  for (const float value : values) {
    const double code =
        std::clamp(std::nearbyint((static_cast<double>(value) - offset) / step), 0.0, max_byte);
    const double difference = offset + step * code - static_cast<double>(value);
    error += difference * difference;
  }
  return error;
}

}  // namespace

std::uint64_t codec_training_bytes(const RowsView& rows, Metric metric) {
  return ScalarCodec{.metric = metric, .dim = rows.dim()}.code_dim() * std::min(rows.rows(), sample_rows) *
         sizeof(float);
}

ScalarCodec train_codec(const Context& context, const RowsView& rows, Metric metric) {
  ScalarCodec codec = {.metric = metric, .dim = rows.dim()};
  if (is_euclidean(metric)) {
    const bool is_signed = rows.type() == ElementType::i8;
    if (is_signed || rows.type() == ElementType::u8 || holds_bytes(context, rows)) {
      codec.offsets.assign(rows.dim(), is_signed ? -128.0F : 0.0F);
      return codec;
    }
  }
  if (metric == Metric::inner_product) codec.max_norm = longest_norm(context, rows);

  const std::size_t dim = codec.code_dim();
  const std::size_t count = std::min(rows.rows(), sample_rows);
  Buffer<float> values(*context.state().budget, dim * count);  // by dimension
  std::vector<double> row(dim);
  for (std::size_t i = 0; i < count; ++i) {
    codec.transform(rows, i * rows.rows() / count, row.data());
    // The dimension that inner products add may be longer than f32 holds.
    for (std::size_t d = 0; d < dim; ++d)
      values[d * count + i] = static_cast<float>(std::clamp(row[d], -max_float, max_float));
  }
  context.state().threads->for_each(dim, [&](std::size_t d) {
    context.state().cancel.check();
    std::sort(values.data() + d * count, values.data() + (d + 1) * count);
  });
  double best = std::numeric_limits<double>::infinity();
  for (const double share : clipped_shares) {
    const auto clipped = static_cast<std::size_t>(share * static_cast<double>(count));
    std::vector<float> offsets(dim);
    double range = 0;
    for (std::size_t d = 0; d < dim; ++d) {
      offsets[d] = values[d * count + clipped];
      range = std::max(range, static_cast<double>(values[(d + 1) * count - 1 - clipped]) -
                                  static_cast<double>(offsets[d]));
    }
    auto step = static_cast<float>(range / max_byte);
    if (!(step > 0) || !std::isfinite(step)) step = 1;  // all values are equal
    // In the order of dimensions, whatever the threads.
    std::vector<double> errors(dim);
    context.state().threads->for_each(dim, [&](std::size_t d) {
      // Most dimensions have a smaller range than the widest: it is put into the middle of the codes.
      const double lowest = offsets[d];
      const double width = static_cast<double>(values[(d + 1) * count - 1 - clipped]) - lowest;
      offsets[d] = static_cast<float>(
          std::clamp(lowest - (static_cast<double>(step) * max_byte - width) / 2, -max_float, max_float));
      errors[d] = squared_error({values.data() + d * count, count}, offsets[d], step);
    });
    double error = 0;
    for (const double part : errors) error += part;
    if (error < best) {
      best = error;
      codec.offsets = std::move(offsets);
      codec.step = step;
    }
  }
  // Codes of vectors that they do not hold exactly must not pass for exact ones, which need no re-ranking.
  if (codec.is_exact()) codec.step = std::nextafter(codec.step, 2.0F);
  return codec;
}

void train_nibbles(ScalarCodec& codec, MatrixView<const std::uint8_t> codes) {
  const std::size_t dim = codec.code_dim();
  const std::size_t count = std::min(codes.rows(), sample_rows);
  std::vector<std::uint64_t> sums(dim, 0);
  std::vector<std::uint64_t> squares(dim, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const std::uint8_t> row = codes.row(i * codes.rows() / count);
    for (std::size_t d = 0; d < dim; ++d) {
      sums[d] += row[d];
      squares[d] += std::uint64_t{row[d]} * row[d];
    }
  }
  const auto total = static_cast<double>(count);
  double variance = 0;
  for (std::size_t d = 0; d < dim; ++d) {
    const double mean = static_cast<double>(sums[d]) / total;
    variance += static_cast<double>(squares[d]) / total - mean * mean;
  }
  const double deviation = std::sqrt(std::max(0.0, variance) / static_cast<double>(dim));
  codec.nibble_step = deviation > 0 ? static_cast<float>(nibble_step_deviations * deviation) : 1.0F;
  codec.nibble_offsets.resize(dim);
  for (std::size_t d = 0; d < dim; ++d)
    codec.nibble_offsets[d] = static_cast<float>(static_cast<double>(sums[d]) / total -
                                                 7.5 * static_cast<double>(codec.nibble_step));
}

}  // namespace nearwise::graph_index

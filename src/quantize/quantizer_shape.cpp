#include "quantize/quantizer_shape.h"

#include <algorithm>

#include "core/checked.h"
#include "core/lost_pages.h"
#include "ops/check_rows.h"
#include "ops/knn_plan.h"
#include "quantize/training_rows.h"

namespace nearwise::quantize {
namespace {

// Dimensions of a part by default: 2 bits per dimension at 8 bits.
constexpr std::size_t default_part_dim = 4;
constexpr std::size_t rows_per_codeword = 256;

}  // namespace

void check_shape(const char* operation, std::size_t dim, std::size_t parts, unsigned bits) {
  require(dim >= 1, "{}: the dimension must be at least 1, got 0", operation);
  require(parts >= 1 && parts <= dim, "{}: there must be 1 to {} parts, as rows have {} elements, got {}",
          operation, dim, dim, parts);
  require(bits == 4 || bits == 8, "{}: bits must be 4 or 8, got {}", operation, bits);
}

CodebookTraining check_training(const char* operation, const Context& context, const RowsView& rows,
                                const ProductQuantizerOptions& options) {
  check_rows(operation, context, rows, rows);
  require(rows.place().kind == DeviceKind::cpu, "{}: rows must be on the host, got rows on {}", operation,
          name(rows.place()));
  const std::size_t parts = options.parts.value_or(divide_up(rows.dim(), default_part_dim));
  check_shape(operation, rows.dim(), parts, options.bits);
  const CodebookTraining training = {
      .shape = {rows.dim(), parts, options.bits, {}}, .iterations = options.iterations, .initial = {}};
  require(options.iterations >= 1, "{}: there must be at least 1 iteration, got 0", operation);
  require(rows.rows() >= training.shape.count(),
          "{}: codes of {} bits have {} codewords per part, which need at least as many rows, got {}",
          operation, options.bits, training.shape.count(), rows.rows());
  const RowsView sample = TrainingRows::shape(rows, max_training_rows(options));
  require(sample.rows() >= training.shape.count(), "{}: training_rows must be at least {}, got {}", operation,
          training.shape.count(), sample.rows());
  require(sample.rows() <= max_shard_rows, "{}: training_rows must be at most {}, got {}", operation,
          max_shard_rows, sample.rows());
  return training;
}

void check_codes(const char* operation, const MatrixView<const std::uint8_t>& codes, std::size_t code_bytes) {
  require(codes.cols() == code_bytes, "{}: codes must have {} bytes, got {}", operation, code_bytes,
          codes.cols());
  require(codes.rows() <= 1 || codes.stride() >= codes.cols(),
          "{}: codes must not overlap, one has {} bytes and the next begins after {}", operation,
          codes.cols(), codes.stride());
  require(codes.place().kind == DeviceKind::cpu, "{}: codes must be on the host, got codes on {}", operation,
          name(codes.place()));
  check_mapped(RowsView(codes));
}

void check_table_metric(const char* operation, Metric metric) {
  require(metric == Metric::sqeuclidean || metric == Metric::inner_product,
          "{}: the metric must be sqeuclidean or inner_product, got {} (only these add up over parts)",
          operation, name(metric));
}

std::size_t max_training_rows(const ProductQuantizerOptions& options) {
  // TrainingRows takes 0 for all.
  return std::max<std::size_t>(1, options.training_rows.value_or(rows_per_codeword << options.bits));
}

}  // namespace nearwise::quantize

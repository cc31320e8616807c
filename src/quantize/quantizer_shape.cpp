#include "quantize/quantizer_shape.h"

#include "core/checked.h"
#include "ops/check_rows.h"
#include "ops/knn_plan.h"
#include "quantize/training_rows.h"

namespace nearwise::quantize {
namespace {

// Elements of a part where the caller does not choose: 2 bits per element, the usual compromise at 8 bits.
constexpr std::size_t default_part_dim = 4;

}  // namespace

void check_shape(const char* operation, std::size_t dim, std::size_t parts, unsigned bits) {
  require(dim >= 1, "{}: the dimension must be at least 1, given 0", operation);
  require(parts >= 1 && parts <= dim, "{}: there must be 1 to {} parts, as rows have {} elements, given {}",
          operation, dim, dim, parts);
  require(bits == 4 || bits == 8, "{}: bits must be 4 or 8, given {}", operation, bits);
}

CodebookTraining check_training(const char* operation, const Context& context, const RowsView& rows,
                                const ProductQuantizerOptions& options) {
  check_rows(operation, context, rows, rows);
  require(rows.place().kind == DeviceKind::cpu, "{}: rows must be on the host, given rows on {}", operation,
          name(rows.place()));
  const std::size_t parts = options.parts == 0 ? divide_up(rows.dim(), default_part_dim) : options.parts;
  check_shape(operation, rows.dim(), parts, options.bits);
  const CodebookTraining training = {
      .shape = {rows.dim(), parts, options.bits, {}}, .iterations = options.iterations, .initial = {}};
  require(options.iterations >= 1, "{}: there must be at least 1 iteration, given 0", operation);
  require(rows.rows() >= training.shape.count(),
          "{}: codes of {} bits have {} codewords per part, which takes at least as many rows, given {}",
          operation, options.bits, training.shape.count(), rows.rows());
  const RowsView sample = TrainingRows::shape(rows, most_training_rows(options));
  require(sample.rows() <= max_shard_rows,
          "{}: it trains on at most {} rows, given {}: take fewer per centroid", operation, max_shard_rows,
          sample.rows());
  return training;
}

void check_codes(const char* operation, const MatrixView<const std::uint8_t>& codes, std::size_t code_bytes) {
  require(codes.cols() == code_bytes, "{}: codes must have {} bytes, given {}", operation, code_bytes,
          codes.cols());
  require(codes.rows() <= 1 || codes.stride() >= codes.cols(),
          "{}: codes must not overlap, one has {} bytes and the next begins after {}", operation,
          codes.cols(), codes.stride());
  require(codes.place().kind == DeviceKind::cpu, "{}: codes must be on the host, given codes on {}",
          operation, name(codes.place()));
}

void check_table_metric(const char* operation, Metric metric) {
  require(metric == Metric::sqeuclidean || metric == Metric::inner_product,
          "{}: the metric must be sqeuclidean or inner_product, given {} (only these add up over parts)",
          operation, name(metric));
}

std::size_t most_training_rows(const ProductQuantizerOptions& options) {
  return checked_multiply(options.rows_per_centroid, std::size_t{1} << options.bits,
                          "ProductQuantizer: rows to train on");
}

}  // namespace nearwise::quantize

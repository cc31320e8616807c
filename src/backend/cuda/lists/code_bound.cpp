#include "backend/cuda/lists/code_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/distance.h"

namespace nearwise::gpu {
namespace {

constexpr double unit = 0x1p-24;  // relative rounding error of an f32 operation
constexpr double double_unit = 0x1p-53;
constexpr double tiny = 0x1p-140;  // bounds the absolute error of underflow

// Longer vectors have squares near the f32 range limit.
constexpr double max_norm = 1e18;

constexpr double report_blur = 0x1p-20;  // as in ScoreBound
constexpr double report_floor = 0x1p-140;

double square_of(std::span<const float> row, std::span<const float> centre) {
  double sum = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double centred =
        static_cast<double>(row[i]) - (centre.empty() ? 0.0 : static_cast<double>(centre[i]));
    sum += centred * centred;
  }
  return sum;
}

}  // namespace

CodeBound::CodeBound(const ListCodec& codec, Metric metric, std::span<const float> centre,
                     std::span<const double> squares)
    : bound_(metric, Products::f32, codec.dim),
      metric_(metric),
      squares_(squares),
      dim_(static_cast<double>(codec.dim)),
      parts_(static_cast<double>(codec.parts())) {
  constexpr double margin = 1 + 0x1p-20;
  for (std::size_t list = 0; list < codec.centroids.rows(); ++list) {
    const std::span<const float> row = codec.centroids.row(list);
    centroid_ = std::max(centroid_, square_of(row, centre));
    given_centroid_ = std::max(given_centroid_, square_of(row, {}));
  }
  centroid_ = margin * std::sqrt(centroid_);
  given_centroid_ = margin * std::sqrt(given_centroid_);
  for (std::size_t part = 0; part < codec.parts(); ++part) {
    const std::span<const float> codewords = codec.codewords_of(part);
    const std::size_t length = codec.part_size(part);
    double longest = 0;
    for (std::size_t begin = 0; begin < codewords.size(); begin += length)
      longest = std::max(longest, square_of(codewords.subspan(begin, length), {}));
    // Parts of a product code are orthogonal; codewords of an additive code may all point in the same
    // direction.
    codewords_ += codec.encoding == ListEncoding::lsq ? std::sqrt(longest) : longest;
  }
  codewords_ = margin * (codec.encoding == ListEncoding::lsq ? codewords_ : std::sqrt(codewords_));
}

bool CodeBound::holds_for(std::size_t query) const {
  return squares_[query] <= max_norm * max_norm && given_centroid_ <= max_norm && centroid_ <= max_norm &&
         codewords_ <= max_norm;
}

// Bound of |computed score - exact score|.
double CodeBound::error(std::size_t query) const {
  const double length = (1 + 0x1p-20) * std::sqrt(squares_[query]);
  const double row_error = unit * (given_centroid_ + codewords_);  // y is a sum in f32
  const double row = centroid_ + codewords_ + row_error;
  // Table entries, each rounded once, and their sum in f32.
  double sum = (parts_ + 1) * unit * length * codewords_;
  // Offset of query and list, and its addition.
  sum += unit * length * centroid_ + unit * length * (centroid_ + codewords_);
  sum += length * row_error;
  // Half norm of the row, and its addition.
  if (is_euclidean(metric_)) sum += unit * row * row / 2 + unit * (row * row / 2 + length * row);
  // f64 sums: of tables, norms and the reported distance.
  sum += (dim_ + 16) * 4 * double_unit * (length + row) * (length + row);
  return 1.01 * sum + (parts_ + 4) * tiny;
}

double CodeBound::limit_from_score(std::size_t query, float score) const {
  const double high = static_cast<double>(score) + error(query);
  const double value = is_euclidean(metric_) ? std::max(0.0, squares_[query] + 2 * high) : high;
  return value + std::abs(value) * report_blur + report_floor;
}

float CodeBound::cutoff(std::size_t query, double limit) const {
  constexpr float max_score = std::numeric_limits<float>::max();
  if (limit == std::numeric_limits<double>::infinity()) return max_score;
  const double score = (is_euclidean(metric_) ? (limit - squares_[query]) / 2 : limit) + error(query);
  if (score >= static_cast<double>(max_score)) return max_score;
  return std::nextafter(static_cast<float>(score), max_score);
}

}  // namespace nearwise::gpu

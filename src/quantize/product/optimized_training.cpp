#include "quantize/product/optimized_training.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "backend/dispatch.h"
#include "backend/stages.h"
#include "core/checked.h"
#include "core/math/elementary.h"
#include "core/memory.h"
#include "ops/finite_rows.h"
#include "quantize/linear_algebra/nearest_orthogonal.h"
#include "quantize/product/coding.h"
#include "quantize/rotation/principal_axes.h"
#include "quantize/rotation/rotating.h"

namespace nearwise::quantize {
namespace {

// k-means iterations after each new rotation; codewords need not converge before the next.
constexpr std::size_t round_iterations = 4;
// Rounds end when one lowers the error by at most this fraction.
constexpr double round_tolerance = 1e-4;

CodebookTraining of_round(const OptimizedTraining& training) {
  CodebookTraining round = training.codebooks;
  round.iterations = std::min(round.iterations, round_iterations);
  return round;
}

// Three candidates exist at once: the best, the current and the next.
std::uint64_t candidate_bytes(const Codebooks& shape) {
  return 3 * (buffer_bytes(shape.dim * shape.dim, sizeof(float)) +
              buffer_bytes(shape.dim * shape.count(), sizeof(float)));
}

// Products of all rows with a matrix, and a decomposition of dim^3 steps, in units of
// cluster::training_cost().
double products_cost(const RowsView& rows) {
  constexpr double per_product = 16;
  return per_product * static_cast<double>(rows.rows()) * static_cast<double>(rows.dim() * rows.dim());
}
double decomposition_cost(const RowsView& rows) {
  constexpr double per_step = 100;
  return per_step * static_cast<double>(rows.dim()) * static_cast<double>(rows.dim() * rows.dim());
}

// Of fit(): the rotation of the rows and the training.
double fit_cost(const RowsView& rows, const CodebookTraining& training) {
  return products_cost(rows) + training_cost(rows, training);
}

class Alternation {
 public:
  Alternation(const Context& context, const RowsView& rows, const OptimizedTraining& training)
      : context_(context),
        rows_(rows),
        training_(training),
        fit_cost_(fit_cost(rows, training.codebooks)),
        round_cost_(products_cost(rows) + decomposition_cost(rows) + fit_cost(rows, of_round(training))),
        stages_(context, training.operation),
        candidates_(budget(), candidate_bytes(shape())),
        centred_(context, rows),
        rotated_(budget(), rows.rows() * rows.dim()),
        codes_(budget(), rows.rows() * shape().code_bytes()),
        no_mean_(rows.dim(), 0.0F) {}

  OptimizedCodebooks run() {
    const auto rounds = static_cast<double>(training_.rounds);
    const double improving = rounds * round_cost_ + (training_.rounds == 0 ? 0 : fit_cost_);
    const double balancing = decomposition_cost(rows_) + fit_cost_;
    OptimizedCodebooks best =
        fit(stages_.next(fit_cost_, balancing + improving), unrotated(), training_.codebooks);
    OptimizedCodebooks balanced =
        fit(stages_.next(balancing, improving), balanced_axes(), training_.codebooks);
    if (balanced.error < best.error)
      best = std::move(balanced);
    else
      encode(best);  // codes are those of the last fit
    improve(best);
    stages_.finish();
    return best;
  }

 private:
  MemoryBudget& budget() const { return *context_.state().budget; }
  const Codebooks& shape() const { return training_.codebooks.shape; }
  std::size_t dim() const { return rows_.dim(); }
  MatrixView<float> rotated() { return {rotated_.data(), rows_.rows(), dim()}; }
  MatrixView<std::uint8_t> codes() { return {codes_.data(), rows_.rows(), shape().code_bytes()}; }
  Codebooks codebooks_of(const OptimizedCodebooks& candidate) const {
    return {dim(), shape().parts, shape().bits, candidate.codewords};
  }

  std::vector<float> unrotated() const {
    std::vector<float> matrix(dim() * dim(), 0.0F);
    for (std::size_t i = 0; i < dim(); ++i) matrix[i * dim() + i] = 1;
    return matrix;
  }

  std::vector<float> balanced_axes() const {
    const PrincipalAxes found = principal_axes(context_, centred_.view());
    const std::vector<std::size_t> dealt = deal_axes(shape(), found.variances);
    std::vector<float> matrix(dim() * dim());
    for (std::size_t i = 0; i < dim(); ++i)
      for (std::size_t k = 0; k < dim(); ++k)
        matrix[i * dim() + k] = static_cast<float>(found.axes[dealt[i] * dim() + k]);
    return matrix;
  }

  void rotate(const std::vector<float>& matrix) {
    rotate_rows(training_.operation, context_, rows_, {{matrix.data(), dim(), dim()}, no_mean_},
                Direction::forward, rotated(), nullptr);
  }

  void encode(const OptimizedCodebooks& candidate) {
    rotate(candidate.matrix);
    encode_rows(training_.operation, context_, rotated(), 0, codebooks_of(candidate), codes(), nullptr);
  }

  // Trains codewords for a rotation and sets codes_ to the rows' codes.
  OptimizedCodebooks fit(const Context& context, std::vector<float> matrix,
                         const CodebookTraining& training) {
    rotate(matrix);
    OptimizedCodebooks fitted{std::move(matrix), train_codebooks(context, rotated(), training), 0};
    encode_rows(training_.operation, context_, rotated(), 0, codebooks_of(fitted), codes(), nullptr);
    fitted.error = coding_error(context_, rotated(), decoder_of(codebooks_of(fitted)), codes());
    return fitted;
  }

  // The rotation that brings centred vectors closest to their reconstructions: an orthogonal Procrustes
  // problem. None if it cannot be found.
  std::optional<std::vector<float>> next_rotation(const OptimizedCodebooks& current) {
    decode_codes(context_, decoder_of(codebooks_of(current)), codes(), rotated(), nullptr);
    Buffer<double> products(budget(), dim() * dim());
    const auto stream = open_stream(context_);
    dispatch(&Ops::cross_products, training_.operation, *stream,
             CrossProductsArgs{rotated(), centred_.view(), {products.data(), dim(), dim()}});
    if (!nearest_orthogonal(context_, products.span(), dim())) return {};
    std::vector<float> matrix(dim() * dim());
    std::ranges::transform(products.span(), matrix.begin(),
                           [](double element) { return static_cast<float>(element); });
    return matrix;
  }

  // Initial codewords for a new rotation: shifted with the rotated mean.
  std::vector<float> moved_codewords(const OptimizedCodebooks& current,
                                     const std::vector<float>& matrix) const {
    std::vector<float> codewords = current.codewords;
    for (std::size_t part = 0; part < shape().parts; ++part)
      for (std::size_t i = 0; i < shape().length(part); ++i) {
        const std::size_t axis = (shape().begin(part) + i) * dim();
        double move = 0;
        for (std::size_t k = 0; k < dim(); ++k)
          move += (static_cast<double>(matrix[axis + k]) - static_cast<double>(current.matrix[axis + k])) *
                  static_cast<double>(centred_.mean()[k]);
        float* const first = codewords.data() + shape().begin(part) * shape().count() + i;
        for (std::size_t codeword = 0; codeword < shape().count(); ++codeword) {
          float& element = first[codeword * shape().length(part)];
          element = static_cast<float>(static_cast<double>(element) + move);
        }
      }
    return codewords;
  }

  void improve(OptimizedCodebooks& best) {
    if (training_.rounds == 0) return;
    OptimizedCodebooks current = best;
    for (std::size_t round = 0; round < training_.rounds; ++round) {
      const auto later_rounds = static_cast<double>(training_.rounds - round - 1);
      const Context context = stages_.next(round_cost_, later_rounds * round_cost_ + fit_cost_);
      std::optional<std::vector<float>> matrix = next_rotation(current);
      if (!matrix) break;
      const std::vector<float> start = moved_codewords(current, *matrix);
      CodebookTraining training = of_round(training_);
      training.initial = start;
      const double before = current.error;
      current = fit(context, std::move(*matrix), training);
      if (current.error < best.error) best = current;
      if (!(before - current.error > round_tolerance * before)) break;
    }
    CodebookTraining last = training_.codebooks;
    last.initial = best.codewords;
    current = fit(stages_.next(fit_cost_, 0), best.matrix, last);
    if (current.error < best.error) best = std::move(current);
  }

  const Context& context_;
  const RowsView rows_;
  const OptimizedTraining& training_;
  const double fit_cost_;
  const double round_cost_;
  Stages stages_;
  const Reservation candidates_;
  const CentredRows centred_;
  Buffer<float> rotated_;       // [rows, dim], or reconstructions
  Buffer<std::uint8_t> codes_;  // [rows, code_bytes]
  const std::vector<float> no_mean_;
};

}  // namespace

std::vector<std::size_t> deal_axes(const Codebooks& shape, const std::vector<double>& variances) {
  // Products as sums of logarithms. Variances are clamped to `least`, so that no logarithm is negative and a
  // part without axes has the smallest sum.
  const double least = std::max(variances.front() * 1e-12, std::numeric_limits<double>::min());
  struct Part {
    double logarithms = 0;
    std::size_t axes = 0;
  };
  std::vector<Part> parts(shape.parts);
  std::vector<std::size_t> dealt(shape.dim);
  for (std::size_t axis = 0; axis < shape.dim; ++axis) {
    std::size_t chosen = shape.parts;
    for (std::size_t part = 0; part < shape.parts; ++part) {
      if (parts[part].axes == shape.length(part)) continue;
      if (chosen == shape.parts || parts[part].logarithms < parts[chosen].logarithms) chosen = part;
    }
    dealt[shape.begin(chosen) + parts[chosen].axes++] = axis;
    parts[chosen].logarithms += natural_logarithm(std::max(variances[axis], least) / least);
  }
  return dealt;
}

std::uint64_t optimized_training_bytes(const Context& context, const RowsView& rows,
                                       const OptimizedTraining& training) {
  const Codebooks& shape = training.codebooks.shape;
  const std::size_t elements = checked_multiply(rows.rows(), rows.dim(), training.operation);
  const RowsView rotated(nullptr, ElementType::f32, rows.rows(), rows.dim(), rows.dim() * sizeof(float));
  const std::vector<float> none;
  const AxesView axes = {{nullptr, rows.dim(), rows.dim()}, none};
  const std::uint64_t kept = candidate_bytes(shape) + CentredRows::bytes(rows) +
                             buffer_bytes(elements, sizeof(float)) +
                             buffer_bytes(rows.rows() * shape.code_bytes(), 1);
  return kept +
         std::max(
             {training_bytes(context, rotated, training.codebooks),
              rotate_bytes(training.operation, context, axes, Direction::forward),
              encode_bytes(training.operation, context, shape),
              coding_error_bytes(context, rows.rows(), rows.dim()), principal_axes_bytes(rows.dim()),
              buffer_bytes(rows.dim() * rows.dim(), sizeof(double)) + nearest_orthogonal_bytes(rows.dim())});
}

OptimizedCodebooks train_optimized_codebooks(const Context& context, const RowsView& rows,
                                             const OptimizedTraining& training) {
  return Alternation(context, rows, training).run();
}

}  // namespace nearwise::quantize

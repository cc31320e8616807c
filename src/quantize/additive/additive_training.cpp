#include "quantize/additive/additive_training.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "backend/dispatch.h"
#include "cluster/training.h"
#include "core/checked.h"
#include "core/memory.h"
#include "core/random.h"
#include "ops/finite_rows.h"
#include "quantize/additive/additive_coding.h"
#include "quantize/additive/additive_least_squares.h"
#include "quantize/rotation/principal_axes.h"

namespace nearwise::quantize {
namespace {

constexpr std::size_t codewords = AdditiveCodebooks::codebook_size;
constexpr std::size_t task_rows = 4096;

// k-means of the initial codebooks, and of the norms.
constexpr KMeansOptions start_options = {.iterations = 10};
constexpr KMeansOptions norm_options = {.iterations = 25};

// Noise of the first round, in units of (standard deviation of an element) / codebooks.
constexpr double first_noise = 0.5;

// Random streams used neither by k-means (cluster/random_streams.h) nor by training_rows.cpp.
std::uint64_t noise_stream(std::size_t round) { return 8 * (round + 1) + 7; }

Codebooks as_one_part(std::size_t dim, std::span<const float> book) { return {dim, 1, 8, book}; }

RowsView like_norms(const RowsView& rows) {
  return {rows.data(), ElementType::f32, rows.rows(), 1, sizeof(float)};
}

RowsView like_floats(const RowsView& rows) {
  return {rows.data(), ElementType::f32, rows.rows(), rows.dim(), rows.dim() * sizeof(float)};
}

std::uint64_t word_bytes(const RowsView& rows, const AdditiveTraining& training) {
  return buffer_bytes(checked_multiply(training.codebooks * codewords, rows.dim(), training.operation),
                      sizeof(float));
}

// k-means counts pairs, which are not steps of this progress.
const ProgressCallback no_callback;

class AdditiveAlternation {
 public:
  AdditiveAlternation(const Context& context, const RowsView& rows, const AdditiveTraining& training,
                      ProgressMeter& progress)
      : context_(context),
        training_(training),
        progress_(progress),
        codewords_bytes_(budget(), word_bytes(rows, training)),
        centred_(context, rows),
        codes_(budget(), rows.rows() * training.codebooks),
        codewords_(training.codebooks * codewords * rows.dim()) {}

  TrainedCodebooks run() {
    start();
    best_ = codewords_;
    best_error_ = error();
    if (training_.rounds != 0) alternate();
    // The first codebook includes the mean.
    for (std::size_t codeword = 0; codeword < codewords; ++codeword)
      for (std::size_t i = 0; i < dim(); ++i) best_[codeword * dim() + i] += centred_.mean()[i];
    return {std::move(best_), {}};
  }

 private:
  MemoryBudget& budget() const { return *context_.state().budget; }
  std::size_t dim() const { return centred_.view().cols(); }
  std::size_t rows() const { return centred_.view().rows(); }
  AdditiveCodebooks codebooks() const { return {dim(), training_.codebooks, codewords_}; }
  MatrixView<std::uint8_t> codes() { return {codes_.data(), rows(), training_.codebooks}; }
  double error() { return coding_error(context_, centred_.view(), decoder_of(codebooks()), codes()); }

  // A residual quantizer: each codebook is trained by k-means on the residuals of those before it.
  void start() {
    const Context::State& state = context_.state();
    Buffer<float> rest(budget(), rows() * dim());
    std::copy_n(centred_.view().data(), rest.size(), rest.data());
    const MatrixView<float> view(rest.data(), rows(), dim());
    const auto stream = open_stream(context_);
    for (std::size_t book = 0; book < training_.codebooks; ++book) {
      ProgressMeter silent(no_callback, state.clock, training_.operation, 0);
      const KMeans trained = cluster::train(context_, view, codewords, start_options, silent);
      float* const own = codewords_.data() + book * codewords * dim();
      std::copy_n(trained.centroids.data(), codewords * dim(), own);
      const MatrixView<std::uint8_t> column(codes_.data() + book, rows(), 1, training_.codebooks);
      dispatch(&Ops::part_codes, training_.operation, *stream,
               PartCodesArgs{.rows = view,
                             .codebooks = as_one_part(dim(), {own, codewords * dim()}),
                             .codes = column,
                             .progress = nullptr});
      state.threads->for_each(divide_up(rows(), task_rows), [&](std::size_t task) {
        state.cancel.check();
        for (std::size_t row = task * task_rows; row < std::min(rows(), (task + 1) * task_rows); ++row)
          for (std::size_t i = 0; i < dim(); ++i) view(row, i) -= own[column(row, 0) * dim() + i];
      });
      progress_.add(rows());
    }
  }

  // Alternates least-squares codewords and local search of codes. Codes are searched with codewords perturbed
  // by decaying noise, to escape local minima (LSQ++). Every round encodes from scratch, as encode() will:
  // codes continued from the previous round would be better than what encode() finds, and codewords fitted to
  // them worse for its codes.
  void alternate() {
    AdditiveLeastSquares squares(context_, training_.codebooks, dim());
    const std::vector<double> deviations = deviations_of_elements();
    for (std::size_t round = 0; round < training_.rounds; ++round) {
      squares.fit(centred_.view(), codes(), codewords_);
      keep_if_better();
      add_noise(round, deviations);
      encode_additive_rows(training_.operation, context_, centred_.view(), codebooks(),
                           {.iterations = training_.iterations}, codes(), &progress_);
    }
    squares.fit(centred_.view(), codes(), codewords_);
    keep_if_better();
  }

  void keep_if_better() {
    const double found = error();
    if (!(found < best_error_)) return;
    best_error_ = found;
    best_ = codewords_;
  }

  std::vector<double> deviations_of_elements() const {
    std::vector<double> squares(dim(), 0.0);
    for (std::size_t row = 0; row < rows(); ++row)
      for (std::size_t i = 0; i < dim(); ++i) {
        const auto value = static_cast<double>(centred_.view()(row, i));
        squares[i] += value * value;
      }
    for (double& square : squares) square = std::sqrt(square / static_cast<double>(rows()));
    return squares;
  }

  void add_noise(std::size_t round, const std::vector<double>& deviations) {
    const double left = 1 - static_cast<double>(round + 1) / static_cast<double>(training_.rounds);
    if (left == 0) return;
    const double size = first_noise * std::sqrt(left) / static_cast<double>(training_.codebooks);
    const Random random(context_.seed(), noise_stream(round));
    context_.state().threads->for_each(training_.codebooks * codewords, [&](std::size_t codeword) {
      for (std::size_t i = 0; i < dim(); ++i) {
        const std::size_t at = codeword * dim() + i;
        codewords_[at] += static_cast<float>(random.normal(at) * deviations[i] * size);
      }
    });
  }

  const Context& context_;
  const AdditiveTraining& training_;
  ProgressMeter& progress_;
  const Reservation codewords_bytes_;
  const CentredRows centred_;
  Buffer<std::uint8_t> codes_;
  std::vector<float> codewords_;
  std::vector<float> best_;
  double best_error_ = std::numeric_limits<double>::infinity();
};

// Codebook of the norm byte: k-means centroids of the norms of decoded vectors.
std::vector<float> train_norms(const Context& context, const RowsView& rows, const AdditiveTraining& training,
                               std::span<const float> trained, ProgressMeter& progress) {
  MemoryBudget& budget = *context.state().budget;
  const AdditiveCodebooks codebooks = {rows.dim(), training.codebooks, trained};
  Buffer<std::uint8_t> codes(budget, rows.rows() * training.codebooks);
  const MatrixView<std::uint8_t> view(codes.data(), rows.rows(), training.codebooks);
  encode_additive_rows(training.operation, context, rows, codebooks, {.iterations = training.iterations},
                       view, &progress);
  Buffer<float> norms(budget, rows.rows());
  additive_norms(context, codebooks, view, norms.span());
  ProgressMeter silent(no_callback, context.state().clock, training.operation, 0);
  const KMeans levels = cluster::train(context, MatrixView<const float>(norms.data(), rows.rows(), 1),
                                       codewords, norm_options, silent);
  std::vector<float> sorted(levels.centroids.data(), levels.centroids.data() + codewords);
  std::ranges::sort(sorted);
  return sorted;
}

}  // namespace

std::uint64_t additive_training_steps(const RowsView& rows, const AdditiveTraining& training) {
  return std::uint64_t{rows.rows()} * (training.codebooks + training.rounds + 1);
}

std::uint64_t additive_training_bytes(const Context& context, const RowsView& rows,
                                      const AdditiveTraining& training) {
  const RowsView floats = like_floats(rows);
  const AdditiveCodebooks shape = {rows.dim(), training.codebooks, {}};
  const auto stream = open_stream(context);
  const std::uint64_t codes = buffer_bytes(rows.rows() * training.codebooks, 1);
  const std::uint64_t encoding = dispatch(&Ops::additive_codes_bytes, training.operation, *stream, shape);
  const std::uint64_t starting =
      buffer_bytes(checked_multiply(rows.rows(), rows.dim(), training.operation), sizeof(float)) +
      std::max(cluster::training_bytes(context, floats, codewords, start_options),
               dispatch(&Ops::part_codes_bytes, training.operation, *stream, as_one_part(rows.dim(), {})));
  const std::uint64_t alternating =
      training.rounds == 0 ? 0
                           : AdditiveLeastSquares::bytes(training.codebooks, rows.dim()) +
                                 std::max(encoding, coding_error_bytes(context, rows.rows(), rows.dim()));
  const std::uint64_t alternation =
      word_bytes(rows, training) + CentredRows::bytes(rows) + codes +
      std::max({starting, alternating, coding_error_bytes(context, rows.rows(), rows.dim())});
  const std::uint64_t norms =
      codes +
      std::max(encoding, buffer_bytes(rows.rows(), sizeof(float)) +
                             cluster::training_bytes(context, like_norms(rows), codewords, norm_options));
  return word_bytes(rows, training) + std::max(alternation, norms);
}

TrainedCodebooks train_additive_codebooks(const Context& context, const RowsView& rows,
                                          const AdditiveTraining& training, ProgressMeter& progress) {
  const Reservation result(*context.state().budget, word_bytes(rows, training));
  TrainedCodebooks trained;
  {
    AdditiveAlternation alternation(context, rows, training, progress);
    trained = alternation.run();
  }
  trained.norms = train_norms(context, rows, training, trained.codewords, progress);
  return trained;
}

}  // namespace nearwise::quantize

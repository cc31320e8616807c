#include "quantize/additive/additive_training.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "backend/dispatch.h"
#include "backend/stages.h"
#include "cluster/training.h"
#include "core/checked.h"
#include "core/math/random.h"
#include "core/memory.h"
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

// The normal equations: a factorisation, and the solution for every dimension. Relative to the distances of
// k-means.
double fit_cost(std::size_t codebooks, std::size_t dim) {
  constexpr double per_step = 4;
  const double order = static_cast<double>(codebooks) * codewords;
  return per_step * order * order * (order / 3 + 2 * static_cast<double>(dim));
}

// The steps of a training, in order, with their costs.
struct Costs {
  Costs(const RowsView& rows, const AdditiveTraining& training)
      : start(cluster::training_cost(like_floats(rows), codewords, start_options)),
        encode(additive_encode_cost(rows.rows(), rows.dim(), training.codebooks, training.iterations)),
        round(encode + fit_cost(training.codebooks, rows.dim())),
        rounds(static_cast<double>(training.rounds) * round),
        // After the last round the codewords are fitted once more.
        norms(round + cluster::training_cost(like_norms(rows), codewords, norm_options)),
        all(static_cast<double>(training.codebooks) * start + rounds + norms) {}

  double start;  // of one codebook
  double encode;
  double round;
  double rounds;
  double norms;
  double all;
};

void encode(const AdditiveTraining& training, const Context& context, const RowsView& rows,
            const AdditiveCodebooks& codebooks, const MatrixView<std::uint8_t>& codes) {
  const Context::State& state = context.state();
  ProgressMeter progress(state.options.progress, state.clock, training.operation, rows.rows());
  encode_additive_rows(training.operation, context, rows, codebooks, {.iterations = training.iterations},
                       codes, &progress);
}

class AdditiveAlternation {
 public:
  AdditiveAlternation(const Context& context, const RowsView& rows, const AdditiveTraining& training,
                      const Costs& costs, Stages& stages)
      : context_(context),
        training_(training),
        costs_(costs),
        stages_(stages),
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
      const auto later_books = static_cast<double>(training_.codebooks - book - 1);
      const double later = later_books * costs_.start + costs_.rounds + costs_.norms;
      const KMeans trained =
          cluster::train(stages_.next(costs_.start, later), view, codewords, start_options);
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
      const auto later_rounds = static_cast<double>(training_.rounds - round - 1);
      const Context context = stages_.next(costs_.round, later_rounds * costs_.round + costs_.norms);
      squares.fit(centred_.view(), codes(), codewords_);
      keep_if_better();
      add_noise(round, deviations);
      encode(training_, context, centred_.view(), codebooks(), codes());
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
  const Costs& costs_;
  Stages& stages_;
  const Reservation codewords_bytes_;
  const CentredRows centred_;
  Buffer<std::uint8_t> codes_;
  std::vector<float> codewords_;
  std::vector<float> best_;
  double best_error_ = std::numeric_limits<double>::infinity();
};

// Codebook of the norm byte: k-means centroids of the norms of decoded vectors.
std::vector<float> train_norms(const Context& context, const RowsView& rows, const AdditiveTraining& training,
                               std::span<const float> trained) {
  MemoryBudget& budget = *context.state().budget;
  const AdditiveCodebooks codebooks = {rows.dim(), training.codebooks, trained};
  Buffer<std::uint8_t> codes(budget, rows.rows() * training.codebooks);
  const MatrixView<std::uint8_t> view(codes.data(), rows.rows(), training.codebooks);
  encode(training, context, rows, codebooks, view);
  Buffer<float> norms(budget, rows.rows());
  additive_norms(context, codebooks, view, norms.span());
  const KMeans levels =
      cluster::train(context.without_progress(), MatrixView<const float>(norms.data(), rows.rows(), 1),
                     codewords, norm_options);
  std::vector<float> sorted(levels.centroids.data(), levels.centroids.data() + codewords);
  std::ranges::sort(sorted);
  return sorted;
}

}  // namespace

double additive_training_cost(const RowsView& rows, const AdditiveTraining& training) {
  return Costs(rows, training).all;
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
                                          const AdditiveTraining& training) {
  const Reservation result(*context.state().budget, word_bytes(rows, training));
  const Costs costs(rows, training);
  Stages stages(context, training.operation);
  TrainedCodebooks trained = AdditiveAlternation(context, rows, training, costs, stages).run();
  trained.norms = train_norms(stages.next(costs.norms, 0), rows, training, trained.codewords);
  stages.finish();
  return trained;
}

}  // namespace nearwise::quantize

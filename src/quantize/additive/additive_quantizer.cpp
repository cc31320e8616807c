// AdditiveQuantizer: argument and memory checks; passes rows to the device.
#include "nearwise/quantize/additive_quantizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/float_environment.h"
#include "core/progress.h"
#include "ops/check_rows.h"
#include "ops/finite_rows.h"
#include "ops/knn_plan.h"
#include "ops/memory_limit.h"
#include "quantize/additive/additive_coding.h"
#include "quantize/additive/additive_search.h"
#include "quantize/additive/additive_training.h"
#include "quantize/quantizer_shape.h"
#include "quantize/training_rows.h"

namespace nearwise {
namespace {

constexpr std::size_t norm_task_rows = 8192;

constexpr const char* encode_name = "AdditiveQuantizer::encode";
constexpr const char* decode_name = "AdditiveQuantizer::decode";
constexpr const char* search_name = "AdditiveQuantizer::search";
constexpr const char* error_name = "AdditiveQuantizer::error";

AdditiveCodebooks codebooks_of(const AdditiveQuantizer& quantizer) {
  return {quantizer.dim(), quantizer.codebooks(), quantizer.codewords()};
}

void check_host(const char* operation, const RowsView& rows) {
  require(rows.place().kind == DeviceKind::cpu, "{}: rows must be on the host, got rows on {}", operation,
          name(rows.place()));
}

void check_dim(const char* operation, const Context& context, const RowsView& rows, std::size_t dim) {
  check_rows(operation, context, rows, rows);
  require(rows.dim() == dim, "{}: rows must have {} elements as in training, got {}", operation, dim,
          rows.dim());
  check_host(operation, rows);
}

void check_encoding(const char* operation, const AdditiveEncodeOptions& options) {
  require(options.iterations >= 1, "{}: there must be at least 1 iteration, got 0", operation);
  require(options.passes >= 1, "{}: there must be at least 1 pass, got 0", operation);
}

void check_codebook_count(const char* operation, std::size_t codebooks) {
  require(codebooks >= 1 && codebooks <= AdditiveQuantizer::most_codebooks,
          "{}: there must be 1 to {} codebooks, got {}", operation, AdditiveQuantizer::most_codebooks,
          codebooks);
}

void check_numbers(const char* operation, const char* what, std::span<const float> numbers) {
  const auto bad = std::ranges::find_if_not(numbers, [](float number) { return std::isfinite(number); });
  require(bad == numbers.end(), "{}: every number must be finite, number {} of the {} is NaN or infinity",
          operation, bad - numbers.begin(), what);
}

// A reconstruction adds one codeword of each codebook: the largest sum must fit in f32.
void check_sums(const char* operation, std::size_t dim, std::span<const float> codebooks) {
  const std::size_t each = dim * AdditiveQuantizer::centroids;
  for (std::size_t i = 0; i < dim; ++i) {
    double sum = 0;
    for (std::size_t book = 0; book < codebooks.size(); book += each) {
      double largest = 0;
      for (std::size_t codeword = 0; codeword < each; codeword += dim)
        largest = std::max(largest, std::abs(static_cast<double>(codebooks[book + codeword + i])));
      sum += largest;
    }
    require(sum <= static_cast<double>(std::numeric_limits<float>::max()),
            "{}: reconstructions must be finite in f32, those of dimension {} reach {}", operation, i, sum);
  }
}

std::size_t max_training_rows(const AdditiveQuantizerOptions& options) {
  // TrainingRows takes 0 for all.
  return std::max<std::size_t>(1, options.training_rows.value_or(256 * AdditiveQuantizer::centroids));
}

quantize::AdditiveTraining check_training(const char* operation, const Context& context, const RowsView& rows,
                                          const AdditiveQuantizerOptions& options) {
  check_rows(operation, context, rows, rows);
  check_host(operation, rows);
  require(rows.dim() >= 1, "{}: the dimension must be at least 1, got 0", operation);
  check_codebook_count(operation, options.codebooks);
  require(options.iterations >= 1, "{}: there must be at least 1 iteration, got 0", operation);
  const RowsView sample = quantize::TrainingRows::shape(rows, max_training_rows(options));
  require(sample.rows() >= AdditiveQuantizer::centroids,
          "{}: training needs at least {} rows, as many as a codebook has codewords, got {}", operation,
          AdditiveQuantizer::centroids, sample.rows());
  require(sample.rows() <= max_shard_rows, "{}: training_rows must be at most {}, got {}", operation,
          max_shard_rows, sample.rows());
  return {operation, options.codebooks, options.rounds, options.iterations};
}

// Index of the nearest level, ties by lower level.
std::uint8_t nearest_level(std::span<const float> levels, float value) {
  const auto above = std::ranges::lower_bound(levels, value);
  if (above == levels.begin()) return 0;
  const auto nearest = [&] {
    const double below = static_cast<double>(value) - static_cast<double>(*(above - 1));
    if (above == levels.end() || below <= static_cast<double>(*above) - static_cast<double>(value))
      return above - 1;
    return above;
  }();
  // The first of equal levels.
  return static_cast<std::uint8_t>(std::ranges::lower_bound(levels, *nearest) - levels.begin());
}

}  // namespace

AdditiveQuantizer::AdditiveQuantizer(std::size_t dim, std::vector<float> codewords, std::vector<float> norms)
    : dim_(dim), codewords_(std::move(codewords)), norms_(std::move(norms)) {}

AdditiveQuantizer AdditiveQuantizer::train(const Context& context, RowsView rows,
                                           const AdditiveQuantizerOptions& options) {
  constexpr const char* operation = "AdditiveQuantizer::train";
  const quantize::AdditiveTraining training = check_training(operation, context, rows, options);
  const DefaultFloatEnvironment environment;
  context.state().cancel.check();
  const std::size_t max_rows = max_training_rows(options);
  check_memory(operation, context,
               quantize::TrainingRows::bytes(rows, max_rows) +
                   quantize::additive_training_bytes(context, quantize::TrainingRows::shape(rows, max_rows),
                                                     training));
  check_coded_range(operation, context, rows);
  const quantize::TrainingRows sample(context, rows, max_rows);
  quantize::TrainedCodebooks trained = quantize::train_additive_codebooks(context, sample.view(), training);
  return {rows.dim(), std::move(trained.codewords), std::move(trained.norms)};
}

AdditiveQuantizer AdditiveQuantizer::from_codebooks(std::size_t dim, std::span<const float> codebooks,
                                                    std::span<const float> norms) {
  constexpr const char* operation = "AdditiveQuantizer::from_codebooks";
  require(dim >= 1, "{}: the dimension must be at least 1, got 0", operation);
  const std::size_t each = checked_multiply(dim, centroids, operation);
  require(codebooks.size() % each == 0, "{}: codebooks must be whole, of {} numbers each, got {}", operation,
          each, codebooks.size());
  check_codebook_count(operation, codebooks.size() / each);
  require(norms.size() == centroids, "{}: there must be {} norms, got {}", operation, centroids,
          norms.size());
  check_numbers(operation, "codebooks", codebooks);
  check_numbers(operation, "norms", norms);
  check_sums(operation, dim, codebooks);
  require(std::ranges::is_sorted(norms), "{}: norms must be in ascending order", operation);
  return {dim, {codebooks.begin(), codebooks.end()}, {norms.begin(), norms.end()}};
}

Matrix<std::uint8_t> AdditiveQuantizer::encode(const Context& context, RowsView rows,
                                               const AdditiveEncodeOptions& options) const {
  check_dim(encode_name, context, rows, dim_);
  check_encoding(encode_name, options);
  const Context::State& state = context.state();
  state.cancel.check();
  const AdditiveCodebooks books = codebooks_of(*this);
  const std::uint64_t result_bytes = checked_multiply(rows.rows(), code_bytes(), encode_name);
  const std::uint64_t norm_bytes = buffer_bytes(rows.rows(), sizeof(float));
  check_memory(
      encode_name, context,
      result_bytes + std::max(norm_bytes, quantize::additive_encode_bytes(encode_name, context, books)));
  check_coded_range(encode_name, context, rows);
  const Reservation reservation(*state.budget, result_bytes);
  Matrix<std::uint8_t> codes(rows.rows(), code_bytes());
  ProgressMeter progress(state.options.progress, state.clock, encode_name, rows.rows());
  const MatrixView<std::uint8_t> codewords(codes.data(), rows.rows(), codebooks(), code_bytes());
  quantize::encode_additive_rows(encode_name, context, rows, books, options, codewords, &progress);
  Buffer<float> lengths(*state.budget, rows.rows());
  quantize::additive_norms(context, books, codewords, lengths.span());
  state.threads->for_each(divide_up(rows.rows(), norm_task_rows), [&](std::size_t task) {
    const std::size_t end = std::min(rows.rows(), (task + 1) * norm_task_rows);
    for (std::size_t row = task * norm_task_rows; row < end; ++row)
      codes(row, codebooks()) = nearest_level(norms_, lengths[row]);
  });
  progress.finish();
  return codes;
}

Matrix<float> AdditiveQuantizer::decode(const Context& context, MatrixView<const std::uint8_t> codes) const {
  return quantize::decode_as(decode_name, context, quantize::decoder_of(codebooks_of(*this)), code_bytes(),
                             codes);
}

Neighbors AdditiveQuantizer::search(const Context& context, RowsView queries,
                                    MatrixView<const std::uint8_t> codes, std::size_t k,
                                    const AdditiveSearchOptions& options) const {
  check_dim(search_name, context, queries, dim_);
  quantize::check_codes(search_name, codes, code_bytes());
  require(k >= 1, "{}: k must be at least 1, got 0", search_name);
  require(options.metric == Metric::sqeuclidean || options.metric == Metric::inner_product,
          "{}: the metric must be sqeuclidean or inner_product, got {}", search_name, name(options.metric));
  context.state().cancel.check();
  const DefaultFloatEnvironment environment;
  return quantize::search_additive_codes(search_name, context,
                                         {.codebooks = codebooks_of(*this),
                                          .norms = norms_,
                                          .queries = queries,
                                          .codes = codes,
                                          .k = k,
                                          .metric = options.metric});
}

double AdditiveQuantizer::error(const Context& context, RowsView rows,
                                const AdditiveEncodeOptions& options) const {
  check_dim(error_name, context, rows, dim_);
  check_encoding(error_name, options);
  const AdditiveCodebooks books = codebooks_of(*this);
  return quantize::mean_error(error_name, context, rows,
                              {.code_bytes = codebooks(),
                               .bytes = quantize::additive_encode_bytes(error_name, context, books),
                               .encode =
                                   [&](const RowsView& part, std::size_t first,
                                       const MatrixView<std::uint8_t>& codes, ProgressMeter* progress) {
                                     check_finite(error_name, context, part, first);
                                     quantize::encode_additive_rows(error_name, context, part, books, options,
                                                                    codes, progress);
                                   }},
                              quantize::decoder_of(books));
}

}  // namespace nearwise

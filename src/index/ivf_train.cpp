// Training of inverted files: centroids of the lists, and the quantizer of residuals.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/float_environment.h"
#include "index/defaults.h"
#include "index/ivf_state.h"
#include "index/residuals.h"
#include "nearwise/additive_quantizer.h"
#include "nearwise/kmeans.h"
#include "nearwise/machine.h"
#include "ops/check_rows.h"
#include "ops/exact_search.h"
#include "ops/finite_rows.h"
#include "quantize/training_rows.h"

namespace nearwise {
namespace {

using index::default_code_bytes;
using index::default_lists;

// Looked at by a search that names no number, until somebody measures: a share of the lists that falls with
// their number.
std::size_t default_probes(std::size_t lists) {
  const auto share = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(lists)) / 2));
  return std::min(lists, std::max<std::size_t>(2, share));
}

Metric metric_of_kmeans(Metric metric) { return metric == Metric::euclidean ? Metric::sqeuclidean : metric; }

template <typename Index, typename Options>
Index build_index(const Context& context, const RowsView& rows, const Options& options,
                  const CalibrationOptions& measure) {
  index::check_options(measure);
  Index index = Index::train(context, rows, options);
  index.add(context, rows);
  // A row alone has no neighbours.
  if (index.size() >= 2) index.calibrate(context, rows, measure);
  return index;
}

std::map<std::string, std::string> describe_training(const Context& context, const RowsView& rows,
                                                     const std::string& options) {
  return {{"version", "nearwise " + version()},
          {"seed", std::to_string(context.seed())},
          {"training", fmt::format("{} on {} x {} {}", options, rows.rows(), rows.dim(), name(rows.type()))}};
}

template <typename Options>
std::string describe(const Options& options, std::size_t lists) {
  return fmt::format("metric {}, lists {}, iterations {}, rows_per_list {}", name(options.metric), lists,
                     options.iterations, options.rows_per_list);
}

struct Coarse {
  Matrix<float> centroids;
  std::vector<float> centre;
};

template <typename Options>
Coarse train_lists(const Context& context, const RowsView& rows, const Options& options) {
  check_rows("train", context, rows, rows);
  require(rows.place().kind == DeviceKind::cpu, "train: rows must be on the host, given rows on {}",
          name(rows.place()));
  require(rows.rows() >= 1, "train: at least 1 row expected, given 0");
  require(options.lists <= rows.rows(),
          "train: at most as many lists as rows expected, given {} lists and {} rows", options.lists,
          rows.rows());
  const std::size_t lists = options.lists != 0 ? options.lists : default_lists(rows.rows());
  require(lists <= max_shard_rows, "train: at most {} lists expected, given {}", max_shard_rows, lists);
  const std::size_t most = checked_multiply(lists, options.rows_per_list, "train: lists * rows_per_list");
  // Here, where rows still have the caller's numbers.
  check_finite("train", context, rows);
  const quantize::TrainingRows sample(context, rows, most);
  KMeans trained =
      train_kmeans(context, sample.view(), lists,
                   {.metric = metric_of_kmeans(options.metric), .iterations = options.iterations});
  const auto stream = open_stream(context);
  std::vector<float> centre = centre_of(*stream, trained.centroids, options.metric);
  return {std::move(trained.centroids), std::move(centre)};
}

constexpr std::size_t rows_per_codeword = 256;

// Residuals of a sample of vectors, for training quantizers.
class LeftOver {
 public:
  LeftOver(const Context& context, const RowsView& rows, std::size_t most_rows,
           const Matrix<float>& centroids, Metric metric)
      : sample_(context, rows, most_rows),
        bytes_(*context.state().budget, sample_.view().rows() * rows.dim() * sizeof(float)),
        rows_(sample_.view().rows(), rows.dim()) {
    const Neighbors nearest = assign(context, sample_.view(), centroids, {.metric = metric});
    index::subtract_centroids(context, sample_.view(), centroids, {nearest.ids.data(), rows_.rows()}, metric,
                              rows_.view());
  }
  const Matrix<float>& rows() const { return rows_; }

 private:
  const quantize::TrainingRows sample_;
  const Reservation bytes_;
  Matrix<float> rows_;
};

void check_sizes(const Matrix<float>& centroids, std::span<const float> codewords, float most_codeword) {
  const std::span<const float> all(centroids.data(), centroids.rows() * centroids.cols());
  require(index::first_too_large(all) == all.size() &&
              index::first_too_large(codewords, most_codeword) == codewords.size(),
          "train: rows of numbers up to {} expected, given larger ones", most_codeword);
}

}  // namespace

IvfFlat IvfFlat::train(const Context& context, RowsView rows, const IvfFlatOptions& options) {
  const DefaultFloatEnvironment environment;
  Coarse coarse = train_lists(context, rows, options);
  const std::size_t lists = coarse.centroids.rows();
  const std::shared_ptr<MemoryBudget> budget = context.state().budget;
  return IvfFlat(std::unique_ptr<State>(
      new State{.metric = options.metric,
                .type = rows.type(),
                .centroids = std::move(coarse.centroids),
                .quantizer = {},
                .part_begins = {},
                .centre = std::move(coarse.centre),
                .probes = default_probes(lists),
                .provenance = describe_training(context, rows, "IvfFlat with " + describe(options, lists)),
                .next_id = 0,
                .budget = budget,
                .file = {},
                .rows = index::InvertedLists(budget, lists, rows.dim() * element_size(rows.type()))}));
}

IvfFlat IvfFlat::build(const Context& context, RowsView rows, const IvfFlatOptions& options,
                       const CalibrationOptions& measure) {
  return build_index<IvfFlat>(context, rows, options, measure);
}

IvfPq IvfPq::build(const Context& context, RowsView rows, const IvfPqOptions& options,
                   const CalibrationOptions& measure) {
  return build_index<IvfPq>(context, rows, options, measure);
}

IvfPq IvfPq::train(const Context& context, RowsView rows, const IvfPqOptions& options) {
  const DefaultFloatEnvironment environment;
  require(options.bits == 4 || options.bits == 8, "train: codes of 4 or 8 bits expected, given {}",
          options.bits);
  const std::size_t code_bytes =
      options.code_bytes != 0 ? options.code_bytes : default_code_bytes(rows.dim());
  // A dimension is the shortest part: where 4 bits each do not fill the bytes, fewer parts do.
  const std::size_t parts = std::min(rows.dim(), code_bytes * (8 / options.bits));
  require(code_bytes <= rows.dim(), "train: codes of at most {} bytes expected, one per dimension, given {}",
          rows.dim(), code_bytes);
  Coarse coarse = train_lists(context, rows, options);
  const std::size_t lists = coarse.centroids.rows();

  const std::shared_ptr<MemoryBudget> budget = context.state().budget;
  ProductQuantizer quantizer = [&] {
    const LeftOver left(context, rows, rows_per_codeword << options.bits, coarse.centroids, options.metric);
    return ProductQuantizer::train(context, left.rows(), {.parts = parts, .bits = options.bits});
  }();
  check_sizes(coarse.centroids, quantizer.codebooks(), index::most_value);
  std::vector<std::size_t> part_begins;
  for (std::size_t part = 0; part <= parts; ++part) part_begins.push_back(quantizer.part_begin(part));
  const std::size_t bytes = quantizer.code_bytes();
  const std::string trained = fmt::format("IvfPq with {}, code_bytes {}, bits {}", describe(options, lists),
                                          code_bytes, options.bits);
  return IvfPq(std::unique_ptr<State>(new State{.metric = options.metric,
                                                .type = ElementType::f32,
                                                .centroids = std::move(coarse.centroids),
                                                .quantizer = std::move(quantizer),
                                                .part_begins = std::move(part_begins),
                                                .centre = std::move(coarse.centre),
                                                .probes = default_probes(lists),
                                                .provenance = describe_training(context, rows, trained),
                                                .next_id = 0,
                                                .budget = budget,
                                                .file = {},
                                                .rows = index::InvertedLists(budget, lists, bytes)}));
}

IvfLsq IvfLsq::build(const Context& context, RowsView rows, const IvfLsqOptions& options,
                     const CalibrationOptions& measure) {
  return build_index<IvfLsq>(context, rows, options, measure);
}

IvfLsq IvfLsq::train(const Context& context, RowsView rows, const IvfLsqOptions& options) {
  const DefaultFloatEnvironment environment;
  require(options.code_bytes >= 1 && options.code_bytes <= AdditiveQuantizer::most_codebooks,
          "train: codes of 1 to {} bytes expected, given {}", AdditiveQuantizer::most_codebooks,
          options.code_bytes);
  require(options.train_iterations >= 1 && options.encode_iterations >= 1,
          "train: at least 1 iteration expected, given 0");
  Coarse coarse = train_lists(context, rows, options);
  const std::size_t lists = coarse.centroids.rows();
  const std::shared_ptr<MemoryBudget> budget = context.state().budget;
  const AdditiveQuantizer quantizer = [&] {
    const LeftOver left(context, rows, rows_per_codeword * AdditiveQuantizer::centroids, coarse.centroids,
                        options.metric);
    return AdditiveQuantizer::train(context, left.rows(),
                                    {.codebooks = options.code_bytes,
                                     .rounds = options.rounds,
                                     .iterations = options.train_iterations,
                                     .rows_per_centroid = 0});
  }();
  check_sizes(coarse.centroids, quantizer.codewords(), index::most_additive_value);
  const std::string trained =
      fmt::format("IvfLsq with {}, code_bytes {}, rounds {}, train_iterations {}, encode_iterations {}",
                  describe(options, lists), options.code_bytes, options.rounds, options.train_iterations,
                  options.encode_iterations);
  return IvfLsq(std::unique_ptr<State>(
      new State{.metric = options.metric,
                .type = ElementType::f32,
                .centroids = std::move(coarse.centroids),
                .quantizer = {},
                .part_begins = {},
                .additive_codewords = {quantizer.codewords().begin(), quantizer.codewords().end()},
                .additive_iterations = options.encode_iterations,
                .centre = std::move(coarse.centre),
                .probes = default_probes(lists),
                .provenance = describe_training(context, rows, trained),
                .next_id = 0,
                .budget = budget,
                .file = {},
                .rows = index::InvertedLists(budget, lists, options.code_bytes)}));
}

}  // namespace nearwise

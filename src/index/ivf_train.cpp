// Training of inverted files: centroids of the lists, and the quantizer of what they leave over.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/float_environment.h"
#include "index/ivf_state.h"
#include "index/residuals.h"
#include "index/usual_shape.h"
#include "nearwise/kmeans.h"
#include "nearwise/machine.h"
#include "ops/exact_search.h"
#include "ops/finite_rows.h"
#include "quantize/training_rows.h"

namespace nearwise {
namespace {

using index::usual_code_bytes;
using index::usual_lists;

// Looked at by a search that names no number, until somebody measures: a share of the lists that falls with their number.
std::size_t usual_probes(std::size_t lists) {
  const auto share = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(lists)) / 2));
  return std::min(lists, std::max<std::size_t>(2, share));
}

Metric metric_of_kmeans(Metric metric) { return metric == Metric::euclidean ? Metric::sqeuclidean : metric; }

template <typename Index, typename Options>
Index build_index(const Context& context, const RowsView& rows, const Options& options,
                  const MeasureOptions& measure) {
  index::check_options(measure);
  Index index = Index::train(context, rows, options);
  index.add(context, rows);
  // A row alone has no neighbours.
  if (index.size() >= 2) index.measure_probes(context, rows, measure);
  return index;
}

std::map<std::string, std::string> describe_training(const Context& context, const RowsView& rows,
                                                     const std::string& options) {
  return {{"version", "nearwise " + version()},
          {"seed", std::to_string(context.seed())},
          {"training", fmt::format("{} on {} x {} {}", options, rows.rows(), rows.dim(), name(rows.type()))}};
}

template <typename Options>
std::string words_of(const Options& options, std::size_t lists) {
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
  const std::size_t lists = options.lists != 0 ? options.lists : usual_lists(rows.rows());
  require(lists <= most_shard_rows, "train: at most {} lists expected, given {}", most_shard_rows, lists);
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
                .probes = usual_probes(lists),
                .provenance = describe_training(context, rows, "IvfFlat with " + words_of(options, lists)),
                .next_id = 0,
                .budget = budget,
                .file = {},
                .rows = index::InvertedLists(budget, lists, rows.dim() * element_size(rows.type()))}));
}

IvfFlat IvfFlat::build(const Context& context, RowsView rows, const IvfFlatOptions& options,
                       const MeasureOptions& measure) {
  return build_index<IvfFlat>(context, rows, options, measure);
}

IvfPq IvfPq::build(const Context& context, RowsView rows, const IvfPqOptions& options,
                   const MeasureOptions& measure) {
  return build_index<IvfPq>(context, rows, options, measure);
}

IvfPq IvfPq::train(const Context& context, RowsView rows, const IvfPqOptions& options) {
  const DefaultFloatEnvironment environment;
  require(options.bits == 4 || options.bits == 8, "train: codes of 4 or 8 bits expected, given {}",
          options.bits);
  const std::size_t code_bytes = options.code_bytes != 0 ? options.code_bytes : usual_code_bytes(rows.dim());
  // A dimension is the shortest part: where 4 bits each do not fill the bytes, fewer parts do.
  const std::size_t parts = std::min(rows.dim(), code_bytes * (8 / options.bits));
  require(code_bytes <= rows.dim(), "train: codes of at most {} bytes expected, one per dimension, given {}",
          rows.dim(), code_bytes);
  Coarse coarse = train_lists(context, rows, options);
  const std::size_t lists = coarse.centroids.rows();

  constexpr std::size_t rows_per_codeword = 256;
  const std::size_t most = rows_per_codeword << options.bits;
  const quantize::TrainingRows sample(context, rows, most);
  const Neighbors nearest = assign(context, sample.view(), coarse.centroids, {.metric = options.metric});
  const std::shared_ptr<MemoryBudget> budget = context.state().budget;
  const Reservation left_bytes(*budget, sample.view().rows() * rows.dim() * sizeof(float));
  Matrix<float> left(sample.view().rows(), rows.dim());
  index::subtract_centroids(context, sample.view(), coarse.centroids, {nearest.ids.data(), left.rows()},
                            options.metric, left.view());
  ProductQuantizer quantizer = ProductQuantizer::train(context, left, {.parts = parts, .bits = options.bits});

  const std::span<const float> centroids(coarse.centroids.data(), lists * rows.dim());
  require(index::first_too_large(centroids) == centroids.size() &&
              index::first_too_large(quantizer.codebooks()) == quantizer.codebooks().size(),
          "train: rows of numbers up to {} expected, given larger ones", index::most_value);
  std::vector<std::size_t> part_begins;
  for (std::size_t part = 0; part <= parts; ++part) part_begins.push_back(quantizer.part_begin(part));
  const std::size_t bytes = quantizer.code_bytes();
  const std::string trained = fmt::format("IvfPq with {}, code_bytes {}, bits {}", words_of(options, lists),
                                          code_bytes, options.bits);
  return IvfPq(std::unique_ptr<State>(new State{.metric = options.metric,
                                                .type = ElementType::f32,
                                                .centroids = std::move(coarse.centroids),
                                                .quantizer = std::move(quantizer),
                                                .part_begins = std::move(part_begins),
                                                .centre = std::move(coarse.centre),
                                                .probes = usual_probes(lists),
                                                .provenance = describe_training(context, rows, trained),
                                                .next_id = 0,
                                                .budget = budget,
                                                .file = {},
                                                .rows = index::InvertedLists(budget, lists, bytes)}));
}

}  // namespace nearwise

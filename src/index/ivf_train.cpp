// Training of inverted files: the centroids of the lists, then the codec of the residuals.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <variant>

#include "backend/dispatch.h"
#include "backend/stages.h"
#include "cluster/centroid_search.h"
#include "cluster/training.h"
#include "core/check.h"
#include "core/float_environment.h"
#include "core/overloaded.h"
#include "index/defaults.h"
#include "index/ivf_state.h"
#include "index/memory_needs.h"
#include "nearwise/kmeans.h"
#include "nearwise/machine.h"
#include "ops/check_rows.h"
#include "ops/exact_search.h"
#include "ops/finite_rows.h"
#include "ops/memory_limit.h"
#include "quantize/training_rows.h"

namespace nearwise {
namespace {

constexpr const char* operation = "Ivf.train";
// add() holds the codes of all its vectors twice for a moment. Large enough that lists rarely grow.
constexpr std::size_t built_batch_rows = 65536;

Metric metric_of_kmeans(Metric metric) { return metric == Metric::euclidean ? Metric::sqeuclidean : metric; }

std::string describe(const Encoding& encoding) {
  return std::visit(
      Overloaded{[](const Flat&) { return std::string("encoding flat"); },
                 [](const Pq& pq) {
                   return fmt::format("encoding pq, code_bytes {}, bits {}", *pq.code_bytes, pq.bits);
                 },
                 [](const Lsq& lsq) {
                   return fmt::format(
                       "encoding lsq, code_bytes {}, rounds {}, train_iterations {}, encode_iterations {}",
                       lsq.code_bytes, lsq.rounds, lsq.train_iterations, lsq.encode_iterations);
                 }},
      encoding);
}

std::map<std::string, std::string> describe_training(const Context& context, const RowsView& rows,
                                                     const IvfOptions& options) {
  return {{"version", "nearwise " + version()},
          {"seed", std::to_string(context.seed())},
          {"training",
           fmt::format("metric {}, lists {}, iterations {}, training_rows {}, {} on {} x {} {}",
                       name(options.metric), *options.lists, options.iterations, *options.training_rows,
                       describe(options.encoding), rows.rows(), rows.dim(), name(rows.type()))}};
}

Matrix<float> train_centroids(const Context& context, const RowsView& rows, const IvfOptions& options) {
  const quantize::TrainingRows sample(context, rows, *options.training_rows);
  KMeans trained =
      train_kmeans(context, sample.view(), *options.lists,
                   {.metric = metric_of_kmeans(options.metric), .iterations = options.iterations});
  return std::move(trained.centroids);
}

double centroids_cost(const RowsView& rows, const IvfOptions& options) {
  return cluster::training_cost(rows.slice(0, *options.training_rows), *options.lists,
                                {.iterations = options.iterations});
}

}  // namespace

IvfOptions index::resolve(const char* caller, const IvfOptions& options, const RowsView& rows) {
  IvfOptions resolved = options;
  resolved.lists = options.lists.value_or(default_lists(rows.rows()));
  require(*resolved.lists >= 1 && *resolved.lists <= std::min(rows.rows(), max_shard_rows),
          "{}: lists must be 1 to {}, as there are {} vectors, got {}", caller,
          std::min(rows.rows(), max_shard_rows), rows.rows(), *resolved.lists);
  const std::size_t training_rows = options.training_rows.value_or(training_rows_per_list * *resolved.lists);
  require(training_rows >= *resolved.lists, "{}: training_rows must be at least the {} lists, got {}", caller,
          *resolved.lists, training_rows);
  resolved.training_rows = std::min(rows.rows(), training_rows);
  resolved.encoding = quantize::resolve(caller, options.encoding, rows.dim());
  return resolved;
}

Ivf Ivf::train(const Context& context, RowsView rows, const IvfOptions& given) {
  const DefaultFloatEnvironment environment;
  check_rows(operation, context, rows, rows);
  require(rows.place().kind == DeviceKind::cpu, "{}: rows must be on the host, got rows on {}", operation,
          name(rows.place()));
  require(rows.rows() >= 1, "{}: there must be at least 1 vector, got 0", operation);
  const IvfOptions options = index::resolve(operation, given, rows);
  check_memory(operation, context, index::training_bytes(context, rows, options));
  // Checked here, before sampling changes the row numbers that messages name.
  if (std::holds_alternative<Flat>(options.encoding))
    check_finite(operation, context, rows);
  else
    check_coded_range(operation, context, rows, max_indexed_value);
  const double codec_cost = quantize::codec_training_cost(rows, *options.lists, options.encoding);
  Stages stages(context, "train");
  Matrix<float> centroids =
      train_centroids(stages.next(centroids_cost(rows, options), codec_cost), rows, options);
  std::vector<float> centre;
  {
    const auto stream = open_stream(context);
    centre = centre_of(*stream, centroids, options.metric);
  }
  auto codec = quantize::train_codec(operation, stages.next(codec_cost, 0), rows, centroids, options.metric,
                                     options.encoding);
  stages.finish();
  const ListCodec view = codec->view();
  const std::shared_ptr<MemoryBudget> budget = context.state().budget;
  return Ivf(std::unique_ptr<State>(
      new State{.metric = options.metric,
                .centroids = std::move(centroids),
                .codec = std::move(codec),
                .centre = std::move(centre),
                .probes = index::default_probes(*options.lists),
                .provenance = describe_training(context, rows, options),
                .budget = budget,
                .rows = index::InvertedLists(budget, *options.lists, view.code_bytes)}));
}

Ivf Ivf::build(const Context& context, RowsView rows, const IvfOptions& options,
               const std::optional<CalibrationOptions>& calibration) {
  if (calibration) index::check_options(*calibration);
  check_rows("Ivf.build", context, rows, rows);
  require(rows.rows() >= 1, "Ivf.build: there must be at least 1 vector, got 0");
  const IvfOptions resolved = index::resolve("Ivf.build", options, rows);
  check_memory("Ivf.build", context,
               index::building_bytes(context, rows, resolved, built_batch_rows,
                                     calibration ? std::min(calibration->queries, rows.rows()) : 0));
  const double training = centroids_cost(rows, resolved) +
                          quantize::codec_training_cost(rows, *resolved.lists, resolved.encoding);
  const double adding =
      cluster::assignment_cost(rows, *resolved.lists) + quantize::encode_cost(rows, resolved.encoding);
  // A single vector has no neighbours.
  const bool calibrates = calibration && rows.rows() >= 2;
  const double calibrating = calibrates ? index::calibration_cost(rows, *calibration) : 0;
  Stages stages(context, "build");
  Ivf index = train(stages.next(training, adding + calibrating), rows, resolved);
  Stages batches(stages.next(adding, calibrating), "add");
  for (std::size_t first = 0; first < rows.rows(); first += built_batch_rows) {
    const RowsView batch = rows.slice(first, std::min(built_batch_rows, rows.rows() - first));
    index.add(batches.next(static_cast<double>(batch.rows()),
                           static_cast<double>(rows.rows() - first - batch.rows())),
              batch);
  }
  if (calibrates) index.calibrate(stages.next(calibrating, 0), rows, *calibration);
  stages.finish();
  return index;
}

}  // namespace nearwise

// Training of inverted files: the centroids of the lists, then the codec of the residuals.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <variant>
#include <vector>

#include "backend/dispatch.h"
#include "backend/stages.h"
#include "cluster/centroid_search.h"
#include "cluster/training.h"
#include "core/check.h"
#include "core/float_environment.h"
#include "core/lost_pages.h"
#include "core/overloaded.h"
#include "ivf/addition.h"
#include "ivf/defaults.h"
#include "ivf/ivf_state.h"
#include "ivf/memory_needs.h"
#include "nearwise/kmeans.h"
#include "nearwise/machine.h"
#include "ops/check_rows.h"
#include "ops/exact_search.h"
#include "ops/finite_rows.h"
#include "ops/memory_limit.h"
#include "quantize/training_rows.h"

namespace nearwise {
namespace {

constexpr const char* train_name = "Ivf.train";
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

IvfOptions ivf::resolve(const char* caller, const IvfOptions& options, const RowsView& rows) {
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
  require(options.vectors == VectorStorage::keep || !std::holds_alternative<Flat>(options.encoding),
          "{}: the lists of a flat index are the vectors: vectors must be keep, got {}", caller,
          name(options.vectors));
  require(options.vectors == VectorStorage::file || options.vector_file.empty(),
          "{}: vector_file is for vectors in a file, got vectors {}", caller, name(options.vectors));
  return resolved;
}

Ivf Ivf::train(const Context& context, RowsView rows, const IvfOptions& given) {
  const DefaultFloatEnvironment environment;
  check_rows(train_name, context, rows, rows);
  require(rows.place().kind == DeviceKind::cpu, "{}: rows must be on the host, got rows on {}", train_name,
          name(rows.place()));
  require(rows.rows() >= 1, "{}: there must be at least 1 vector, got 0", train_name);
  const IvfOptions options = ivf::resolve(train_name, given, rows);
  check_memory(train_name, context, ivf::training_bytes(context, rows, options));
  // Checked here, before sampling changes the row numbers that messages name.
  if (std::holds_alternative<Flat>(options.encoding))
    check_finite(train_name, context, rows);
  else
    check_coded_range(train_name, context, rows, max_indexed_value);
  const double codec_cost = quantize::codec_training_cost(rows, *options.lists, options.encoding);
  Stages stages(context, "train");
  Matrix<float> centroids =
      train_centroids(stages.next(centroids_cost(rows, options), codec_cost), rows, options);
  std::vector<float> centre;
  {
    const auto stream = open_stream(context);
    centre = centre_of(*stream, centroids, options.metric);
  }
  auto codec = quantize::train_codec(train_name, stages.next(codec_cost, 0), rows, centroids, options.metric,
                                     options.encoding);
  stages.finish();
  const ListCodec view = codec->view();
  ivf::VectorStore vectors = ivf::make_vector_store(
      context, rows, view.is_flat() ? VectorStorage::none : options.vectors, options.vector_file);
  const std::size_t vector_bytes = vectors.bytes();
  const std::shared_ptr<MemoryBudget> budget = context.state().budget;
  return Ivf(std::unique_ptr<State>(
      new State{.metric = options.metric,
                .centroids = std::move(centroids),
                .codec = std::move(codec),
                .centre = std::move(centre),
                .budget = budget,
                .vectors = std::move(vectors),
                .probes = ivf::default_probes(*options.lists),
                .provenance = describe_training(context, rows, options),
                .rows = ivf::InvertedLists(budget, *options.lists, view.code_bytes, vector_bytes)}));
}

// As add(), but list by list in the space they need and batch by batch: an index that is not complete is
// dropped.
void Ivf::fill(const Context& context, const RowsView& rows) {
  const DefaultFloatEnvironment environment;
  State& state = *state_;
  if (state.rows.vector_bytes() != 0) state.vectors.check("Ivf.build", context, rows);
  Buffer<std::uint32_t> file_rows;
  if (vectors() == VectorStorage::file)
    file_rows = state.vectors.rows_in_file("Ivf.build", *context.state().budget, rows, {}, 0);
  ivf::Addition addition(state, context, rows, std::move(file_rows));
  Stages stages(context, "add");
  addition.assign(stages.next(addition.assign_cost(), addition.encode_cost()));
  addition.reserve(static_cast<Id>(rows.rows()));
  Stages batches(stages.next(1, 0), "add");
  const std::size_t batch_rows = std::min(rows.rows(), ivf::added_batch_rows);
  Buffer<std::uint8_t> codes(*context.state().budget,
                             state.is_flat() ? 0 : batch_rows * state.rows.code_bytes());
  std::vector<Id> ids(batch_rows);
  for (std::size_t first = 0; first < rows.rows(); first += batch_rows) {
    const std::size_t count = std::min(batch_rows, rows.rows() - first);
    addition.encode(
        batches.next(static_cast<double>(count), static_cast<double>(rows.rows() - first - count)), first,
        count, codes.data());
    std::iota(ids.begin(), ids.end(), static_cast<Id>(first));
    if (!addition.append(first, count, {ids.data(), count}, codes.data())) check_lost_pages();
  }
  state.next_id = static_cast<Id>(rows.rows());
  state.next_file_row = addition.next_file_row(0);
  state.publish();
  stages.finish();
}

Ivf Ivf::build(const Context& context, RowsView rows, const IvfOptions& options,
               const std::optional<CalibrationOptions>& calibration) {
  if (calibration) ivf::check_options(*calibration);
  check_rows("Ivf.build", context, rows, rows);
  require(rows.rows() >= 1, "Ivf.build: there must be at least 1 vector, got 0");
  const IvfOptions resolved = ivf::resolve("Ivf.build", options, rows);
  check_memory("Ivf.build", context, ivf::building_bytes(context, rows, resolved, calibration));
  const double training = centroids_cost(rows, resolved) +
                          quantize::codec_training_cost(rows, *resolved.lists, resolved.encoding);
  const double adding =
      cluster::assignment_cost(rows, *resolved.lists) + quantize::encode_cost(rows, resolved.encoding);
  // A single vector has no neighbours.
  const bool calibrates = calibration && rows.rows() >= 2;
  const double calibrating = calibrates ? ivf::calibration_cost(rows, *calibration) : 0;
  Stages stages(context, "build");
  Ivf index = train(stages.next(training, adding + calibrating), rows, resolved);
  index.fill(stages.next(adding, calibrating), rows);
  if (calibrates)
    IvfInternals::calibrate(index, stages.next(calibrating, 0), rows, *calibration, MemoryCheck::by_caller);
  stages.finish();
  return index;
}

}  // namespace nearwise

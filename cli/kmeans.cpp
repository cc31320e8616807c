// nearwise kmeans: centroids of the vectors of a file, and the nearest centroid of each.
#include "nearwise/kmeans.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/commands.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/work.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {
namespace {

// 0 stands for none.
template <typename T>
std::optional<T> optional_of(T value) {
  return value == T{} ? std::nullopt : std::optional<T>(value);
}

struct KMeansArguments {
  std::filesystem::path base;
  std::filesystem::path output;
  std::filesystem::path assignments;  // empty: not written
  std::filesystem::path initial;      // empty: by seeding
  std::size_t clusters = 0;
  Metric metric = Metric::sqeuclidean;
  std::size_t iterations = 20;
  double tolerance = 1e-4;
  std::string seeding = "plus_plus";
  std::size_t min_cluster_size = 1;
  double balance = 0;
  std::size_t batch_size = 0;
  bool hierarchical = false;
  std::size_t seed = 0;
  ContextArguments context;
};

void check_options(const Session& session, const KMeansArguments& arguments) {
  const bool has_batches = arguments.batch_size != 0;
  if (arguments.hierarchical && !arguments.initial.empty())
    refuse(session, "--hierarchical cannot be combined with --initial");
  if (arguments.hierarchical && arguments.balance != 0)
    refuse(session, "--hierarchical cannot be combined with --balance");
  if (arguments.hierarchical && has_batches)
    refuse(session, "--hierarchical cannot be combined with --batch-size");
  if (has_batches && arguments.batch_size < arguments.clusters)
    refuse(session, "--batch-size must be at least the {} clusters, got {}", arguments.clusters,
           arguments.batch_size);
  if (has_batches && (arguments.balance != 0 || arguments.min_cluster_size != 1))
    refuse(session, "--batch-size cannot be combined with --balance or --min-cluster-size");
  if (arguments.balance != 0 && arguments.balance < 1)
    refuse(session, "--balance must be at least 1, or 0 for no bound, got {}", arguments.balance);
}

void check_outputs(const Session& session, const KMeansArguments& arguments) {
  require_suffix_for(Content::vectors, arguments.output);
  if (element_type_of(arguments.output).value_or(ElementType::f32) != ElementType::f32)
    refuse(session, "centroids are f32: use .fbin, .fvecs or .npy, got '{}'", arguments.output.string());
  check_output(session, arguments.output, {arguments.base, arguments.initial});
  if (arguments.assignments.empty()) return;
  require_suffix_for(Content::neighbors, arguments.assignments);
  check_output(session, arguments.assignments, {arguments.base, arguments.initial});
  check_outputs_differ(session, {arguments.output, arguments.assignments});
}

void check_shapes(const Session& session, const KMeansArguments& arguments, RowsView base, RowsView initial) {
  if (arguments.clusters > base.rows())
    refuse(session, "--clusters must be at most the {} vectors of '{}', got {}", base.rows(),
           arguments.base.string(), arguments.clusters);
  if (arguments.min_cluster_size > base.rows() / arguments.clusters)
    refuse(session, "--min-cluster-size must be at most {} ({} vectors in {} clusters), got {}",
           base.rows() / arguments.clusters, base.rows(), arguments.clusters, arguments.min_cluster_size);
  if (!arguments.initial.empty() && (initial.rows() != arguments.clusters || initial.dim() != base.dim()))
    refuse(session, "initial centroids must be {} x {}, '{}' has {} x {}", arguments.clusters, base.dim(),
           arguments.initial.string(), initial.rows(), initial.dim());
}

KMeans train(const Context& context, const KMeansArguments& arguments, RowsView base, RowsView initial) {
  const KMeansOptions options{.metric = arguments.metric,
                              .iterations = arguments.iterations,
                              .tolerance = arguments.tolerance,
                              .seeding = arguments.seeding == "random" ? Seeding::random : Seeding::plus_plus,
                              .initial = initial,
                              .min_cluster_size = arguments.min_cluster_size,
                              .balance = optional_of(arguments.balance),
                              .batch_size = optional_of(arguments.batch_size)};
  return arguments.hierarchical ? train_hierarchical_kmeans(context, base, arguments.clusters, options)
                                : train_kmeans(context, base, arguments.clusters, options);
}

void write_outputs(const Session& session, const KMeansArguments& arguments, RowsView base,
                   const KMeans& trained, Neighbors assigned) {
  const Interrupt::Protection protection = session.interrupt->protect();
  VectorWriter writer(arguments.output, ElementType::f32, base.dim());
  writer.append(trained.centroids);
  writer.commit();
  if (arguments.assignments.empty()) return;
  Provenance provenance = describe_run(session);
  provenance["base"] = describe_input(arguments.output, trained.centroids);
  provenance["queries"] = describe_input(arguments.base, base);
  write_result(arguments.assignments, arguments.metric, std::move(provenance), std::move(assigned));
}

Json summary(const KMeansArguments& arguments, const Context& context, RowsView base, const KMeans& trained,
             double seconds) {
  Json json = {{"clusters", trained.centroids.rows()},
               {"dim", base.dim()},
               {"rows", base.rows()},
               {"converged", trained.converged},
               {"errors", trained.errors},
               {"smallest_cluster", std::ranges::min(trained.sizes)},
               {"largest_cluster", std::ranges::max(trained.sizes)},
               {"seconds", seconds},
               {"output", arguments.output.string()},
               {"assignments", nullptr},
               {"metric", name(arguments.metric)},
               {"seed", arguments.seed}};
  if (!arguments.assignments.empty()) json["assignments"] = arguments.assignments.string();
  json.update(describe_context(context));
  return json;
}

std::string sentence(const KMeansArguments& arguments, RowsView base, const KMeans& trained, double seconds) {
  const std::string iterations =
      arguments.hierarchical ? "two levels" : fmt::format("{} iterations", trained.errors.size());
  return fmt::format("wrote {} x {} to {}: {} vectors, {}{}, mean squared distance {:.6g}, {:.3g} s",
                     trained.centroids.rows(), base.dim(), arguments.output.string(), base.rows(), iterations,
                     trained.converged ? ", converged" : "",
                     trained.errors.back() / static_cast<double>(base.rows()), seconds);
}

ExitCode run_kmeans(Session& session, const KMeansArguments& arguments) {
  check_options(session, arguments);
  check_outputs(session, arguments);
  const VectorFile base_file = open_vectors(arguments.base);
  std::optional<VectorFile> initial_file;
  if (!arguments.initial.empty()) initial_file.emplace(open_vectors(arguments.initial));
  const RowsView base = base_file.rows();
  const RowsView initial = initial_file ? initial_file->rows() : RowsView();
  check_shapes(session, arguments, base, initial);

  const Context context = open_context(arguments.context, arguments.seed);
  const Stopwatch watch;
  Work training(session, context, "vectors", base.rows() * arguments.iterations);
  const KMeans trained =
      training.run_on_data([&](const Context& own) { return train(own, arguments, base, initial); });
  Neighbors assigned;
  if (!arguments.assignments.empty()) {
    Work assigning(session, context, "assign", "vectors", base.rows());
    assigned = assigning.run([&](const Context& own) {
      return assign(own, base, trained.centroids,
                    {.metric = arguments.metric, .balance = optional_of(arguments.balance)});
    });
  }
  const double seconds = watch.seconds();
  write_outputs(session, arguments, base, trained, std::move(assigned));
  conclude(session, summary(arguments, context, base, trained, seconds),
           sentence(arguments, base, trained, seconds));
  return ExitCode::ok;
}

}  // namespace

void add_kmeans(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_kmeans, "kmeans", "Find centroids by k-means",
      "  nearwise kmeans base.fbin --clusters 1000 -o centroids.fbin --assignments clusters.ivecs\n\n"
      "Centroids are f32: .fbin, .fvecs or .npy. Assignments are neighbours with k = 1: .nw, .bin, .ivecs,\n"
      ".ibin or .npy.");
  add_path(parser, "base", arguments.base, "Vectors: .npy .fbin .fvecs .u8bin ...")->required();
  add_count(parser, "--clusters", arguments.clusters, 1, "Number of centroids")->required()->default_str("");
  add_output(parser, arguments.output, "Centroids to write");
  add_path(parser, "--assignments", arguments.assignments,
           "Write the nearest centroid of every vector, and its distance");
  add_choice(parser, "--metric", arguments.metric,
             {Metric::sqeuclidean, Metric::inner_product, Metric::cosine},
             "Metric; inner_product and cosine: centroids of length 1 (spherical k-means)");
  add_count(parser, "--iterations", arguments.iterations, 1, "Maximum iterations");
  add_number(parser, "--tolerance", arguments.tolerance,
             "Stop if an iteration lowers the error by no more than this share");
  add_choice<std::string>(parser, "--seeding", arguments.seeding, {"plus_plus", "random"},
                          "Initial centroids: k-means++ or random vectors");
  add_path(parser, "--initial", arguments.initial, "Initial centroids from a file");
  add_count(parser, "--min-cluster-size", arguments.min_cluster_size, 1,
            "Re-seed clusters smaller than this between iterations");
  add_number(parser, "--balance", arguments.balance,
             "Maximum cluster size as a multiple of the mean, also for assignments; 0: no bound");
  add_count(parser, "--batch-size", arguments.batch_size, 0,
            "Mini-batch size, for files larger than memory; 0: all vectors in every iteration");
  parser.add_flag("--hierarchical", arguments.hierarchical,
                  "Two levels: much faster for many clusters, slightly larger error");
  add_seed(parser, arguments.seed);
  add_context_options(parser, arguments.context);
}

}  // namespace nearwise::cli

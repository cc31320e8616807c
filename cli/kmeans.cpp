// nearwise kmeans: centroids of the rows of a file, and the centroid of every row.
#include "nearwise/kmeans.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "cli/shared/files.h"
#include "cli/shared/machine_options.h"
#include "cli/shared/progress_bar.h"
#include "cli/shared/result_file.h"
#include "cli/shared/session.h"
#include "cli/shared/text.h"
#include "nearwise/context.h"
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
  std::filesystem::path assignments;  // empty: not wanted
  std::filesystem::path initial;      // empty: by seeding
  std::size_t clusters = 0;
  std::string metric = "sqeuclidean";
  std::size_t iterations = 20;
  double tolerance = 1e-4;
  std::string seeding = "plus_plus";
  std::size_t least_rows = 1;
  double balance = 0;
  std::size_t batch_rows = 0;
  bool hierarchical = false;
  std::size_t seed = 0;
  MachineArguments machine;
};

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, "kmeans: " + message);
}

// What can be known to fail is told before the work, not after it.
void check_outputs(const KMeansArguments& arguments) {
  require_suffix_for(Content::vectors, arguments.output);
  if (element_type_of(arguments.output).value_or(ElementType::f32) != ElementType::f32)
    refuse(fmt::format("centroids are f32, which .fbin, .fvecs and .npy hold, given '{}'",
                       arguments.output.string()));
  check_output("kmeans", arguments.output, {arguments.base, arguments.initial});
  if (arguments.assignments.empty()) return;
  require_suffix_for(Content::neighbors, arguments.assignments);
  check_output("kmeans", arguments.assignments, {arguments.base, arguments.initial});
  if (arguments.assignments == arguments.output)
    refuse(fmt::format("centroids and assignments would both go to '{}'", arguments.output.string()));
}

// Mistakes in the arguments are told here, so that what the library itself refuses as invalid is the content of a file.
void check_shapes(const KMeansArguments& arguments, RowsView base, RowsView initial) {
  if (arguments.clusters > base.rows())
    refuse(fmt::format("{} clusters exceed the {} rows of '{}'", arguments.clusters, base.rows(),
                       arguments.base.string()));
  if (arguments.least_rows > base.rows() / arguments.clusters)
    refuse(fmt::format("{} clusters of at least {} rows exceed the {} of '{}'", arguments.clusters,
                       arguments.least_rows, base.rows(), arguments.base.string()));
  if (!arguments.initial.empty() && (initial.rows() != arguments.clusters || initial.dim() != base.dim()))
    refuse(fmt::format("the initial centroids must be {} x {}, '{}' has {} x {}", arguments.clusters,
                       base.dim(), arguments.initial.string(), initial.rows(), initial.dim()));
}

KMeans train(const Context& context, const KMeansArguments& arguments, RowsView base, RowsView initial) {
  const KMeansOptions options{.metric = parse_metric(arguments.metric),
                              .iterations = arguments.iterations,
                              .tolerance = arguments.tolerance,
                              .seeding = arguments.seeding == "random" ? Seeding::random : Seeding::plus_plus,
                              .initial = initial,
                              .min_cluster_size = arguments.least_rows,
                              .balance = optional_of(arguments.balance),
                              .batch_size = optional_of(arguments.batch_rows)};
  return blame_data([&] {
    return arguments.hierarchical ? train_hierarchical_kmeans(context, base, arguments.clusters, options)
                                  : train_kmeans(context, base, arguments.clusters, options);
  });
}

// On the budget that the training was on.
Neighbors assign_rows(Session& session, const Context& trained_on, const KMeansArguments& arguments,
                      RowsView base, const KMeans& trained) {
  ProgressBar bar(choose_progress_style(session.quiet), "assign", "rows", base.rows());
  const Context context = trained_on.with_progress(bar.callback());
  const Interrupt::Protection protection = session.interrupt->protect([&context] { context.cancel(); });
  return assign(context, base, trained.centroids,
                {.metric = parse_metric(arguments.metric), .balance = optional_of(arguments.balance)});
}

void write_centroids(const std::filesystem::path& path, RowsView centroids) {
  VectorWriter writer(path, ElementType::f32, centroids.dim());
  writer.append(centroids);
  writer.commit();
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
               {"metric", arguments.metric},
               {"seed", arguments.seed},
               {"device", arguments.machine.device},
               {"isa", context.isa()},
               {"threads", context.threads()},
               {"memory_peak_bytes", context.memory_peak()}};
  if (!arguments.assignments.empty()) json["assignments"] = arguments.assignments.string();
  return json;
}

std::string sentence(const KMeansArguments& arguments, RowsView base, const KMeans& trained, double seconds) {
  const std::string iterations =
      arguments.hierarchical ? "two levels" : fmt::format("{} iterations", trained.errors.size());
  return fmt::format("wrote {} x {} to {}: {} rows, {}{}, mean squared distance {:.6g}, {:.3g} s",
                     trained.centroids.rows(), base.dim(), arguments.output.string(), base.rows(), iterations,
                     trained.converged ? ", converged" : "",
                     trained.errors.back() / static_cast<double>(base.rows()), seconds);
}

ExitCode run_kmeans(Session& session, const KMeansArguments& arguments) {
  if (arguments.hierarchical && !arguments.initial.empty())
    refuse("--hierarchical takes no initial centroids");
  if (arguments.hierarchical && arguments.balance != 0) refuse("--hierarchical takes no --balance");
  if (arguments.hierarchical && arguments.batch_rows != 0) refuse("--hierarchical takes no --batch-rows");
  if (arguments.batch_rows != 0 && arguments.batch_rows < arguments.clusters)
    refuse(fmt::format("batches of {} rows are too small for {} clusters", arguments.batch_rows,
                       arguments.clusters));
  if (arguments.batch_rows != 0 && (arguments.balance != 0 || arguments.least_rows != 1))
    refuse("--batch-rows takes no --balance and no --least-rows");
  if (arguments.balance != 0 && arguments.balance < 1)
    refuse(fmt::format("the balance must be at least 1, or 0 for none, given {}", arguments.balance));
  check_outputs(arguments);
  const VectorFile base_file = open_vectors(arguments.base);
  std::optional<VectorFile> initial_file;
  if (!arguments.initial.empty()) initial_file.emplace(open_vectors(arguments.initial));
  const RowsView base = base_file.rows();
  const RowsView initial = initial_file ? initial_file->rows() : RowsView();
  check_shapes(arguments, base, initial);

  ProgressBar bar(choose_progress_style(session.quiet), "kmeans", "rows", base.rows() * arguments.iterations);
  const Context context = open_context(arguments.machine, bar, arguments.seed);
  const auto start = std::chrono::steady_clock::now();
  KMeans trained;
  {
    const Interrupt::Protection protection = session.interrupt->protect([&context] { context.cancel(); });
    trained = train(context, arguments, base, initial);
  }
  bar.finish();
  session.interrupt->check();
  Neighbors assigned;
  if (!arguments.assignments.empty()) assigned = assign_rows(session, context, arguments, base, trained);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  session.interrupt->check();

  const Interrupt::Protection protection = session.interrupt->protect();
  write_centroids(arguments.output, trained.centroids);
  if (!arguments.assignments.empty()) {
    Provenance provenance = describe_run(session);
    provenance["base"] = describe_input(arguments.output, trained.centroids);
    provenance["queries"] = describe_input(arguments.base, base);
    write_result(arguments.assignments, parse_metric(arguments.metric), std::move(provenance),
                 std::move(assigned));
  }
  if (session.json)
    print(summary(arguments, context, base, trained, seconds));
  else
    remark(session, sentence(arguments, base, trained, seconds));
  return ExitCode::ok;
}

void require_kmeans_metric(std::string_view name) {
  if (parse_metric(name) == Metric::euclidean)
    throw Error(ErrorCode::invalid_argument,
                "metric: expected one of sqeuclidean, inner_product, cosine, given 'euclidean'");
}

}  // namespace

void add_kmeans(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<KMeansArguments>();
  CLI::App* const command = add_command(
      app, session, "kmeans", "Find centroids of the rows of a file by k-means",
      "  nearwise kmeans base.fbin --clusters 1000 --output centroids.fbin --assignments "
      "clusters.ivecs\n\n"
      "Centroids are f32: .fbin, .fvecs or .npy. Assignments are neighbours with k = 1: .nw, .bin, "
      ".ivecs,\n.ibin or .npy.");
  add_path(*command, "base", arguments->base, "Vectors: .npy .fbin .fvecs .u8bin ...")->required();
  add_count(*command, "--clusters", arguments->clusters, 1, "Centroids to find")->required();
  add_path(*command, "-o,--output", arguments->output, "Where the centroids go")->required();
  add_path(*command, "--assignments", arguments->assignments,
           "Where the nearest centroid of every row goes, and its distance");
  add_word(*command, "--metric", arguments->metric, require_kmeans_metric,
           "sqeuclidean; inner_product or cosine for centroids of length 1 (sqeuclidean)");
  add_count(*command, "--iterations", arguments->iterations, 1, "At most so many (20)");
  add_number(*command, "--tolerance", arguments->tolerance,
             "End when an iteration lowers the error by no more than this share of it (1e-4)");
  command
      ->add_option("--seeding", arguments->seeding,
                   "Where centroids start: plus_plus (far rows more likely) or random rows (plus_plus)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"plus_plus", "random"}));
  add_path(*command, "--initial", arguments->initial, "Centroids to start from instead");
  add_count(*command, "--least-rows", arguments->least_rows, 1,
            "Give up clusters with fewer rows, between iterations (1: empty ones)");
  add_number(*command, "--balance", arguments->balance,
             "No cluster, nor centroid in the assignments, gets more than this many times its share of the "
             "rows (0: no bound)");
  add_count(*command, "--batch-rows", arguments->batch_rows, 0,
            "Mini-batches, for files far beyond memory: an iteration looks at so many rows (0: all)");
  command->add_flag("--hierarchical", arguments->hierarchical,
                    "In two levels: much sooner for very many clusters, at a somewhat larger error");
  add_count(*command, "--seed", arguments->seed, 0, "Of the random numbers (0)");
  add_machine_options(*command, arguments->machine);
  command->callback([&session, arguments] {
    session.run = [&session, arguments] { return run_kmeans(session, *arguments); };
  });
}

}  // namespace nearwise::cli

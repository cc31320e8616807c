// k-means for Python.
#include "nearwise/kmeans.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>

#include "bindings.h"
#include "nearwise/error.h"

namespace nearwise::python {
namespace {

// 0 stands for none.
template <typename T>
std::optional<T> optional_of(T value) {
  return value == T{} ? std::nullopt : std::optional<T>(value);
}

// centroids, sizes, errors and whether it converged
using NumpyKMeans = std::tuple<NumpyMatrix<float>, NumpyVector<std::int64_t>, NumpyVector<double>, bool>;

// initial: None, or an array whose type initial_type names.
NumpyKMeans train(nb::handle rows, const std::string& rows_type, std::uint64_t clusters, bool hierarchical,
                  const std::string& metric, std::uint64_t iterations, double tolerance,
                  const std::string& seeding, nb::handle initial, const std::string& initial_type,
                  std::uint64_t least_rows, double balance, std::uint64_t batch_rows, std::uint64_t seed,
                  const std::string& device, int threads, std::uint64_t memory_limit, const std::string& isa,
                  nb::handle progress) {
  KMeansOptions options{.metric = parse_metric(metric),
                        .iterations = iterations,
                        .tolerance = tolerance,
                        .seeding = parse_seeding(seeding),
                        .min_cluster_size = least_rows,
                        .balance = optional_of(balance),
                        .batch_size = optional_of(batch_rows)};
  const Context context = context_for(device, threads, memory_limit, isa, seed);
  const BorrowedRows borrowed(rows, parse_element_type(rows_type), "rows");
  std::optional<BorrowedRows> start;
  if (!initial.is_none()) {
    start.emplace(initial, parse_element_type(initial_type), "initial");
    options.initial = start->view();
  }
  const RowsView& view = borrowed.view();
  std::optional<KMeans> found;
  const double steps = static_cast<double>(view.rows()) * static_cast<double>(view.dim()) *
                       static_cast<double>(clusters) * static_cast<double>(iterations);
  run_by_size(context, progress, steps, [&](const Context& own) {
    found = hierarchical ? train_hierarchical_kmeans(own, view, clusters, options)
                         : train_kmeans(own, view, clusters, options);
  });
  return {to_numpy(std::move(found->centroids)), to_numpy<std::int64_t>(std::move(found->sizes)),
          to_numpy<double>(std::move(found->errors)), found->converged};
}

NumpyNeighbors assign_arrays(nb::handle rows, const std::string& rows_type, nb::handle centroids,
                             const std::string& centroids_type, const std::string& metric, double balance,
                             const std::string& device, int threads, std::uint64_t memory_limit,
                             const std::string& isa, nb::handle progress) {
  const AssignOptions options{.metric = parse_metric(metric), .balance = optional_of(balance)};
  const Context context = context_for(device, threads, memory_limit, isa);
  const BorrowedRows borrowed(rows, parse_element_type(rows_type), "rows");
  const BorrowedRows centroid_rows(centroids, parse_element_type(centroids_type), "centroids");
  std::optional<Neighbors> found;
  run_by_size(
      context, progress, multiplications(borrowed.view(), centroid_rows.view()),
      [&](const Context& own) { found = assign(own, borrowed.view(), centroid_rows.view(), options); });
  return to_numpy(std::move(*found));
}

}  // namespace

Seeding parse_seeding(const std::string& text) {
  if (text == "plus_plus") return Seeding::plus_plus;
  if (text == "random") return Seeding::random;
  throw Error(ErrorCode::invalid_argument,
              "seeding: expected one of plus_plus, random, given '" + text + "'");
}

void bind_kmeans(nb::module_& module) {
  module.def("train_kmeans", train, nb::arg("rows"), nb::arg("rows_type"), nb::arg("clusters"),
             nb::arg("hierarchical"), nb::arg("metric"), nb::arg("iterations"), nb::arg("tolerance"),
             nb::arg("seeding"), nb::arg("initial").none(), nb::arg("initial_type"), nb::arg("least_rows"),
             nb::arg("balance"), nb::arg("batch_rows"), nb::arg("seed"), nb::arg("device"),
             nb::arg("threads"), nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none(),
             "centroids [clusters, dim], sizes [clusters], errors, and whether it converged");
  module.def("assign", assign_arrays, nb::arg("rows"), nb::arg("rows_type"), nb::arg("centroids"),
             nb::arg("centroids_type"), nb::arg("metric"), nb::arg("balance"), nb::arg("device"),
             nb::arg("threads"), nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none(),
             "ids and distances [rows, 1]");
}

}  // namespace nearwise::python

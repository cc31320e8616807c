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

// centroids, sizes, errors and whether it converged
using NumpyKMeans = std::tuple<NumpyMatrix<float>, NumpyVector<std::int64_t>, NumpyVector<double>, bool>;

NumpyKMeans train_kmeans(const BorrowedRows& rows, std::uint64_t clusters, bool hierarchical,
                         const std::string& metric, std::uint64_t iterations, double tolerance,
                         const std::string& seeding, const BorrowedRows* initial,
                         std::uint64_t min_cluster_size, double balance, std::uint64_t batch_size,
                         const Settings& settings, nb::handle progress) {
  KMeansOptions options{.metric = parse_metric(metric),
                        .iterations = iterations,
                        .tolerance = tolerance,
                        .seeding = parse_seeding(seeding),
                        .min_cluster_size = min_cluster_size,
                        .balance = optional_of(balance),
                        .batch_size = optional_of(batch_size)};
  const Context context = context_for(settings);
  if (initial != nullptr) options.initial = initial->view();
  const RowsView& view = rows.view();
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

NumpyNeighbors assign_arrays(const BorrowedRows& rows, const BorrowedRows& centroids,
                             const std::string& metric, double balance, const Settings& settings,
                             nb::handle progress) {
  const AssignOptions options{.metric = parse_metric(metric), .balance = optional_of(balance)};
  const Context context = context_for(settings);
  std::optional<Neighbors> found;
  run_by_size(context, progress, multiplications(rows.view(), centroids.view()),
              [&](const Context& own) { found = assign(own, rows.view(), centroids.view(), options); });
  return to_numpy(std::move(*found));
}

}  // namespace

Seeding parse_seeding(const std::string& text) {
  if (text == "plus_plus") return Seeding::plus_plus;
  if (text == "random") return Seeding::random;
  throw Error(ErrorCode::invalid_argument, "seeding: expected one of plus_plus, random, got '" + text + "'");
}

void bind_kmeans(nb::module_& module) {
  module.def("train_kmeans", train_kmeans, nb::arg("rows"), nb::arg("clusters"), nb::arg("hierarchical"),
             nb::arg("metric"), nb::arg("iterations"), nb::arg("tolerance"), nb::arg("seeding"),
             nb::arg("initial").none(), nb::arg("min_cluster_size"), nb::arg("balance"),
             nb::arg("batch_size"), nb::arg("settings"), nb::arg("progress").none(),
             "centroids [clusters, dim], sizes [clusters], errors, and whether it converged");
  module.def("assign", assign_arrays, nb::arg("rows"), nb::arg("centroids"), nb::arg("metric"),
             nb::arg("balance"), nb::arg("settings"), nb::arg("progress").none(),
             "ids and distances [rows, 1]");
}

}  // namespace nearwise::python

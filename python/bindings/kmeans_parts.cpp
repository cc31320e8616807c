// The steps of k-means for Python.
#include "nearwise/kmeans_parts.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "nearwise/error.h"
#include "results.h"

namespace nearwise::python {
namespace {

// sums, sizes and errors
using NumpySums = std::tuple<NumpyMatrix<double>, NumpyVector<std::int64_t>, NumpyVector<double>>;
// clusters, times and rows
using NumpySplitRows = std::tuple<NumpyVector<std::int64_t>, NumpyVector<double>, NumpyVector<std::int64_t>>;

MatrixView<const float> centroids_of(const BorrowedRows& borrowed) {
  const RowsView& rows = borrowed.view();
  if (rows.type() != ElementType::f32)
    throw Error(ErrorCode::invalid_argument,
                "centroids: expected f32 elements, got " + std::string(name(rows.type())));
  return {reinterpret_cast<const float*>(rows.data()), rows.rows(), rows.dim(),
          rows.stride_bytes() / sizeof(float), rows.place()};
}

NumpyMatrix<float> seed(const BorrowedRows& rows, std::uint64_t clusters, const std::string& metric,
                        const std::string& seeding, const BorrowedRows* initial, const Settings& settings,
                        nb::handle progress) {
  KMeansOptions options{.metric = parse_metric(metric), .seeding = parse_seeding(seeding)};
  if (initial != nullptr) options.initial = initial->view();
  return to_numpy(result_of(settings, progress, [&](const Context& own) {
    return seed_kmeans(own, rows.view(), clusters, options);
  }));
}

NumpySums sum(const BorrowedRows& rows, const BorrowedRows& centroids, std::uint64_t first_row,
              const std::string& metric, const Settings& settings, nb::handle progress) {
  const KMeansBlock block = {rows.view(), first_row, parse_metric(metric)};
  ClusterSums found =
      result_of(settings, progress, multiplications(rows.view(), centroids.view()),
                [&](const Context& own) { return sum_clusters(own, block, centroids_of(centroids)); });
  return {to_numpy(std::move(found.sums)), to_numpy<std::int64_t>(std::move(found.sizes)),
          to_numpy<double>(std::move(found.errors))};
}

std::vector<std::uint64_t> to_sizes(const NumpyVector<const std::int64_t>& sizes) {
  std::vector<std::uint64_t> found;
  for (std::size_t c = 0; c < sizes.shape(0); ++c) {
    const std::int64_t size = sizes.view()(c);
    if (size < 0)
      throw Error(ErrorCode::invalid_argument, "sizes: expected at least 0, got " + std::to_string(size));
    found.push_back(static_cast<std::uint64_t>(size));
  }
  return found;
}

NumpyMatrix<float> move(const NumpyMatrix<const double>& sums, const NumpyVector<const std::int64_t>& sizes,
                        const BorrowedRows& centroids, const std::string& metric) {
  ClusterSums given{Matrix<double>(sums.shape(0), sums.shape(1)), to_sizes(sizes), {}};
  const auto view = sums.view();
  for (std::size_t c = 0; c < given.sums.rows(); ++c)
    for (std::size_t i = 0; i < given.sums.cols(); ++i) given.sums(c, i) = view(c, i);
  return to_numpy(move_centroids(given, centroids_of(centroids), parse_metric(metric)));
}

using Split = std::pair<std::uint64_t, std::uint64_t>;  // cluster, rows

std::vector<Split> choose(const NumpyVector<const std::int64_t>& sizes,
                          const NumpyVector<const double>& errors) {
  ClusterSums sums{Matrix<double>(), to_sizes(sizes), {}};
  for (std::size_t c = 0; c < errors.shape(0); ++c) sums.errors.push_back(errors.view()(c));
  std::vector<Split> splits;
  for (const ClusterSplit& split : choose_splits(sums)) splits.emplace_back(split.cluster, split.rows);
  return splits;
}

NumpySplitRows draw(const BorrowedRows& rows, const BorrowedRows& assigned, const BorrowedRows& moved,
                    const std::vector<Split>& splits, std::uint64_t iteration, std::uint64_t first_row,
                    const std::string& metric, const Settings& settings) {
  const KMeansBlock block = {rows.view(), first_row, parse_metric(metric)};
  std::vector<ClusterSplit> wanted;
  for (const auto& [cluster, count] : splits) wanted.push_back({cluster, count});
  const std::vector<SplitRow> found = result_of(settings, nb::none(), [&](const Context& own) {
    return draw_split_rows(own, block, centroids_of(assigned), centroids_of(moved), wanted, iteration);
  });
  std::vector<std::int64_t> clusters;
  std::vector<double> times;
  std::vector<std::int64_t> numbers;
  for (const SplitRow& row : found) {
    clusters.push_back(static_cast<std::int64_t>(row.cluster));
    times.push_back(row.time);
    numbers.push_back(static_cast<std::int64_t>(row.row));
  }
  return {to_numpy<std::int64_t>(std::move(clusters)), to_numpy<double>(std::move(times)),
          to_numpy<std::int64_t>(std::move(numbers))};
}

}  // namespace

void bind_kmeans_parts(nb::module_& module) {
  module.def("seed_kmeans", seed, nb::arg("rows"), nb::arg("clusters"), nb::arg("metric"), nb::arg("seeding"),
             nb::arg("initial").none(), nb::arg("settings"), nb::arg("progress").none(),
             "centroids [clusters, dim] to start from");
  module.def("sum_clusters", sum, nb::arg("rows"), nb::arg("centroids"), nb::arg("first_row"),
             nb::arg("metric"), nb::arg("settings"), nb::arg("progress").none(),
             "sums [clusters, dim], sizes and errors [clusters]");
  module.def("move_centroids", move, nb::arg("sums"), nb::arg("sizes"), nb::arg("centroids"),
             nb::arg("metric"), "centroids [clusters, dim]");
  module.def("choose_splits", choose, nb::arg("sizes"), nb::arg("errors"),
             "clusters that rows are to be drawn from, and how many");
  module.def("draw_split_rows", draw, nb::arg("rows"), nb::arg("assigned"), nb::arg("moved"),
             nb::arg("splits"), nb::arg("iteration"), nb::arg("first_row"), nb::arg("metric"),
             nb::arg("settings"), "clusters, times and row numbers of those drawn");
}

}  // namespace nearwise::python

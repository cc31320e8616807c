// k-means in parts for Python.
#include "nearwise/kmeans_parts.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings.h"
#include "nearwise/error.h"

namespace nearwise::python {
namespace {

// sums, sizes and errors
using NumpySums = std::tuple<NumpyMatrix<double>, NumpyVector<std::int64_t>, NumpyVector<double>>;
// clusters, times and rows
using NumpySplitRows = std::tuple<NumpyVector<std::int64_t>, NumpyVector<double>, NumpyVector<std::int64_t>>;

MatrixView<const float> centroids_of(const BorrowedRows& borrowed) {
  const RowsView& rows = borrowed.view();
  return {reinterpret_cast<const float*>(rows.data()), rows.rows(), rows.dim(),
          rows.stride_bytes() / sizeof(float), rows.place()};
}

NumpyMatrix<float> seed(nb::handle rows, const std::string& rows_type, std::uint64_t clusters,
                        const std::string& metric, const std::string& seeding, nb::handle initial,
                        const std::string& initial_type, std::uint64_t seed_number, const std::string& device,
                        int threads, std::uint64_t memory_limit, const std::string& isa) {
  KMeansOptions options{.metric = parse_metric(metric), .seeding = parse_seeding(seeding)};
  const Context context = context_for(device, threads, memory_limit, isa, seed_number);
  const BorrowedRows borrowed(rows, parse_element_type(rows_type), "rows");
  std::optional<BorrowedRows> start;
  if (!initial.is_none()) {
    start.emplace(initial, parse_element_type(initial_type), "initial");
    options.initial = start->view();
  }
  Matrix<float> found;
  run(context, nb::none(),
      [&](const Context& own) { found = seed_kmeans(own, borrowed.view(), clusters, options); });
  return to_numpy(std::move(found));
}

NumpySums sum(nb::handle rows, const std::string& rows_type, nb::handle centroids, std::uint64_t first_row,
              const std::string& metric, const std::string& device, int threads, std::uint64_t memory_limit,
              const std::string& isa, nb::handle progress) {
  const Context context = context_for(device, threads, memory_limit, isa);
  const BorrowedRows borrowed(rows, parse_element_type(rows_type), "rows");
  const BorrowedRows points(centroids, ElementType::f32, "centroids");
  const KMeansBlock block = {borrowed.view(), first_row, parse_metric(metric)};
  ClusterSums found;
  run_by_size(context, progress, multiplications(borrowed.view(), points.view()),
              [&](const Context& own) { found = sum_clusters(own, block, centroids_of(points)); });
  return {to_numpy(std::move(found.sums)), to_numpy<std::int64_t>(std::move(found.sizes)),
          to_numpy<double>(std::move(found.errors))};
}

std::vector<std::uint64_t> to_sizes(const NumpyVector<const std::int64_t>& sizes) {
  std::vector<std::uint64_t> found;
  for (std::size_t c = 0; c < sizes.shape(0); ++c) {
    const std::int64_t size = sizes.view()(c);
    if (size < 0)
      throw Error(ErrorCode::invalid_argument, "sizes: expected at least 0, given " + std::to_string(size));
    found.push_back(static_cast<std::uint64_t>(size));
  }
  return found;
}

NumpyMatrix<float> move(const NumpyMatrix<const double>& sums, const NumpyVector<const std::int64_t>& sizes,
                        nb::handle centroids, const std::string& metric) {
  const BorrowedRows points(centroids, ElementType::f32, "centroids");
  ClusterSums given{Matrix<double>(sums.shape(0), sums.shape(1)), to_sizes(sizes), {}};
  const auto view = sums.view();
  for (std::size_t c = 0; c < given.sums.rows(); ++c)
    for (std::size_t i = 0; i < given.sums.cols(); ++i) given.sums(c, i) = view(c, i);
  return to_numpy(move_centroids(given, centroids_of(points), parse_metric(metric)));
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

NumpySplitRows draw(nb::handle rows, const std::string& rows_type, nb::handle assigned, nb::handle moved,
                    const std::vector<Split>& splits, std::uint64_t iteration, std::uint64_t first_row,
                    const std::string& metric, std::uint64_t seed_number, const std::string& device,
                    int threads, std::uint64_t memory_limit, const std::string& isa) {
  const Context context = context_for(device, threads, memory_limit, isa, seed_number);
  const BorrowedRows borrowed(rows, parse_element_type(rows_type), "rows");
  const BorrowedRows before(assigned, ElementType::f32, "centroids");
  const BorrowedRows after(moved, ElementType::f32, "moved");
  const KMeansBlock block = {borrowed.view(), first_row, parse_metric(metric)};
  std::vector<ClusterSplit> wanted;
  for (const auto& [cluster, count] : splits) wanted.push_back({cluster, count});
  std::vector<SplitRow> found;
  run(context, nb::none(), [&](const Context& own) {
    found = draw_split_rows(own, block, centroids_of(before), centroids_of(after), wanted, iteration);
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
  module.def("seed_kmeans", seed, nb::arg("rows"), nb::arg("rows_type"), nb::arg("clusters"),
             nb::arg("metric"), nb::arg("seeding"), nb::arg("initial").none(), nb::arg("initial_type"),
             nb::arg("seed"), nb::arg("device"), nb::arg("threads"), nb::arg("memory_limit"), nb::arg("isa"),
             "centroids [clusters, dim] to start from");
  module.def("sum_clusters", sum, nb::arg("rows"), nb::arg("rows_type"), nb::arg("centroids"),
             nb::arg("first_row"), nb::arg("metric"), nb::arg("device"), nb::arg("threads"),
             nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none(),
             "sums [clusters, dim], sizes and errors [clusters]");
  module.def("move_centroids", move, nb::arg("sums"), nb::arg("sizes"), nb::arg("centroids"),
             nb::arg("metric"), "centroids [clusters, dim]");
  module.def("choose_splits", choose, nb::arg("sizes"), nb::arg("errors"),
             "clusters that rows are to be drawn from, and how many");
  module.def("draw_split_rows", draw, nb::arg("rows"), nb::arg("rows_type"), nb::arg("assigned"),
             nb::arg("moved"), nb::arg("splits"), nb::arg("iteration"), nb::arg("first_row"),
             nb::arg("metric"), nb::arg("seed"), nb::arg("device"), nb::arg("threads"),
             nb::arg("memory_limit"), nb::arg("isa"), "clusters, times and row numbers of those drawn");
}

}  // namespace nearwise::python

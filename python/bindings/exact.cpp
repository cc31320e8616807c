// Exact search for Python.
#include "nearwise/exact.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bindings.h"
#include "results.h"

namespace nearwise::python {
namespace {

NumpyNeighbors knn_arrays(const BorrowedRows& queries, const BorrowedRows& base, std::uint64_t k,
                          const std::string& metric, bool pad, bool exclude_self, const Filter* filter,
                          const Settings& settings, nb::handle progress) {
  const KnnOptions options{.metric = parse_metric(metric),
                           .short_rows = pad ? ShortRows::pad : ShortRows::refuse,
                           .exclude_self = exclude_self,
                           .filter = filter_of(filter)};
  return to_numpy(
      result_of(settings, progress, multiplications(queries.view(), base.view()),
                [&](const Context& own) { return knn(own, queries.view(), base.view(), k, options); }));
}

NumpyNeighbors graph_arrays(const BorrowedRows& base, std::uint64_t k, const std::string& metric, bool pad,
                            const Settings& settings, nb::handle progress) {
  const KnnOptions options{.metric = parse_metric(metric),
                           .short_rows = pad ? ShortRows::pad : ShortRows::refuse};
  return to_numpy(
      result_of(settings, progress, multiplications(base.view(), base.view()),
                [&](const Context& own) { return exact_knn_graph(own, base.view(), k, options); }));
}

NumpyRangeNeighbors range_arrays(const BorrowedRows& queries, const BorrowedRows& base, float radius,
                                 const std::string& metric, const Filter* filter, const Settings& settings,
                                 nb::handle progress) {
  const RangeOptions options{.metric = parse_metric(metric), .filter = filter_of(filter)};
  return to_numpy(result_of(
      settings, progress, multiplications(queries.view(), base.view()),
      [&](const Context& own) { return range_search(own, queries.view(), base.view(), radius, options); }));
}

}  // namespace

double multiplications(const RowsView& queries, const RowsView& base) {
  return static_cast<double>(queries.rows()) * static_cast<double>(base.rows()) *
         static_cast<double>(base.dim());
}

void bind_exact(nb::module_& module) {
  module.def("knn", knn_arrays, nb::arg("queries"), nb::arg("base"), nb::arg("k"), nb::arg("metric"),
             nb::arg("pad"), nb::arg("exclude_self"), nb::arg("filter").none(), nb::arg("settings"),
             nb::arg("progress").none(), "ids and distances [queries, k]");
  module.def("exact_knn_graph", graph_arrays, nb::arg("base"), nb::arg("k"), nb::arg("metric"),
             nb::arg("pad"), nb::arg("settings"), nb::arg("progress").none(), "ids and distances [rows, k]");
  module.def("range_search", range_arrays, nb::arg("queries"), nb::arg("base"), nb::arg("radius"),
             nb::arg("metric"), nb::arg("filter").none(), nb::arg("settings"), nb::arg("progress").none(),
             "offsets [queries + 1], ids and distances");
}

}  // namespace nearwise::python

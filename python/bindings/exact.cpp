// Exact search for Python.
#include "nearwise/exact.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>

#include "bindings.h"
#include "nearwise/error.h"

namespace nearwise::python {
namespace {

NumpyNeighbors knn_arrays(nb::handle queries, const std::string& queries_type, nb::handle base,
                          const std::string& base_type, std::uint64_t k, const std::string& metric,
                          const std::string& short_rows, bool exclude_self, const std::string& device,
                          int threads, std::uint64_t memory_limit, const std::string& isa,
                          nb::handle progress) {
  const KnnOptions options{.metric = parse_metric(metric),
                           .short_rows = parse_short_rows(short_rows),
                           .exclude_self = exclude_self};
  const Context context = context_for(device, threads, memory_limit, isa);
  const BorrowedRows query_rows(queries, parse_element_type(queries_type), "queries");
  const BorrowedRows base_rows(base, parse_element_type(base_type), "base");
  std::optional<Neighbors> found;
  run_by_size(context, progress, multiplications(query_rows.view(), base_rows.view()),
              [&](const Context& own) { found = knn(own, query_rows.view(), base_rows.view(), k, options); });
  return to_numpy(std::move(*found));
}

NumpyNeighbors graph_arrays(nb::handle base, const std::string& base_type, std::uint64_t k,
                            const std::string& metric, const std::string& short_rows,
                            const std::string& device, int threads, std::uint64_t memory_limit,
                            const std::string& isa, nb::handle progress) {
  const KnnOptions options{.metric = parse_metric(metric), .short_rows = parse_short_rows(short_rows)};
  const Context context = context_for(device, threads, memory_limit, isa);
  const BorrowedRows rows(base, parse_element_type(base_type), "base");
  std::optional<Neighbors> found;
  run_by_size(context, progress, multiplications(rows.view(), rows.view()),
              [&](const Context& own) { found = exact_knn_graph(own, rows.view(), k, options); });
  return to_numpy(std::move(*found));
}

NumpyRangeNeighbors range_arrays(nb::handle queries, const std::string& queries_type, nb::handle base,
                                 const std::string& base_type, float radius, const std::string& metric,
                                 const std::string& device, int threads, std::uint64_t memory_limit,
                                 const std::string& isa, nb::handle progress) {
  const RangeOptions options{.metric = parse_metric(metric)};
  const Context context = context_for(device, threads, memory_limit, isa);
  const BorrowedRows query_rows(queries, parse_element_type(queries_type), "queries");
  const BorrowedRows base_rows(base, parse_element_type(base_type), "base");
  std::optional<RangeNeighbors> found;
  run_by_size(context, progress, multiplications(query_rows.view(), base_rows.view()),
              [&](const Context& own) {
                found = range_search(own, query_rows.view(), base_rows.view(), radius, options);
              });
  return to_numpy(std::move(*found));
}

}  // namespace

double multiplications(const RowsView& queries, const RowsView& base) {
  return static_cast<double>(queries.rows()) * static_cast<double>(base.rows()) *
         static_cast<double>(base.dim());
}

ShortRows parse_short_rows(const std::string& text) {
  if (text == "refuse") return ShortRows::refuse;
  if (text == "pad") return ShortRows::pad;
  throw Error(ErrorCode::invalid_argument, "short_rows: expected one of refuse, pad, given '" + text + "'");
}

void bind_exact(nb::module_& module) {
  module.def("knn", knn_arrays, nb::arg("queries"), nb::arg("queries_type"), nb::arg("base"),
             nb::arg("base_type"), nb::arg("k"), nb::arg("metric"), nb::arg("short_rows"),
             nb::arg("exclude_self"), nb::arg("device"), nb::arg("threads"), nb::arg("memory_limit"),
             nb::arg("isa"), nb::arg("progress").none(), "ids and distances [queries, k]");
  module.def("exact_knn_graph", graph_arrays, nb::arg("base"), nb::arg("base_type"), nb::arg("k"),
             nb::arg("metric"), nb::arg("short_rows"), nb::arg("device"), nb::arg("threads"),
             nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none(),
             "ids and distances [rows, k]");
  module.def("range_search", range_arrays, nb::arg("queries"), nb::arg("queries_type"), nb::arg("base"),
             nb::arg("base_type"), nb::arg("radius"), nb::arg("metric"), nb::arg("device"),
             nb::arg("threads"), nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none(),
             "offsets [queries + 1], ids and distances");
}

}  // namespace nearwise::python

// Exact search for Python.
#include "nearwise/exact.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "bindings.h"
#include "nearwise/error.h"

namespace nearwise::python {
namespace {

// Multiplications that any machine of ours does in about a millisecond.
constexpr double brief_work = 1 << 20;

NumpyNeighbors knn_arrays(nb::handle queries, const std::string& queries_type, nb::handle base,
                          const std::string& base_type, std::uint64_t k, const std::string& metric,
                          const std::string& short_rows, const std::string& device, int threads,
                          std::uint64_t memory_limit, const std::string& isa, nb::handle progress) {
  const KnnOptions options{.metric = parse_metric(metric), .short_rows = parse_short_rows(short_rows)};
  const Context context = context_for(device, threads, memory_limit, isa);
  const BorrowedRows query_rows(queries, parse_element_type(queries_type), "queries");
  const BorrowedRows base_rows(base, parse_element_type(base_type), "base");
  const RowsView query_view = query_rows.view();
  const RowsView base_view = base_rows.view();

  std::optional<Neighbors> found;
  const auto search = [&](const Context& own) { found = knn(own, query_view, base_view, k, options); };
  const double products = static_cast<double>(query_view.rows()) * static_cast<double>(base_view.rows()) *
                          static_cast<double>(base_view.dim());
  if (progress.is_none() && products <= brief_work)
    run_briefly(context, search);
  else
    run(context, progress, search);
  return to_numpy(std::move(*found));
}

}  // namespace

ShortRows parse_short_rows(const std::string& text) {
  if (text == "refuse") return ShortRows::refuse;
  if (text == "pad") return ShortRows::pad;
  throw Error(ErrorCode::invalid_argument, "short_rows: expected one of refuse, pad, given '" + text + "'");
}

void bind_exact(nb::module_& module) {
  module.def("knn", knn_arrays, nb::arg("queries"), nb::arg("queries_type"), nb::arg("base"),
             nb::arg("base_type"), nb::arg("k"), nb::arg("metric"), nb::arg("short_rows"), nb::arg("device"),
             nb::arg("threads"), nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none(),
             "ids and distances [queries, k]");
}

}  // namespace nearwise::python

// The choice of an index, for Python.
#include "nearwise/choose_index.h"

#include <nanobind/stl/string.h>

#include <string>

#include "bindings.h"
#include "results.h"

namespace nearwise::python {
namespace {

nb::dict to_dict(const IndexEstimate& estimate) {
  nb::dict entry;
  entry["kind"] = std::string(name(estimate.kind));
  entry["vectors"] = std::string(name(estimate.vectors));
  entry["bytes"] = estimate.bytes;
  entry["build_bytes"] = estimate.build_bytes;
  entry["build_seconds"] = estimate.build_seconds;
  entry["query_seconds"] = estimate.query_seconds;
  entry["total_seconds"] = estimate.total_seconds;
  entry["fits"] = estimate.fits;
  return entry;
}

// (estimates, reason, table)
nb::tuple choose(std::uint64_t rows, std::uint64_t dim, const std::string& element_type,
                 const std::string& metric, double target_recall, const std::string& queries,
                 std::uint64_t expected_queries, const Settings& settings) {
  const IndexRequest request = {.rows = rows,
                                .dim = dim,
                                .element_type = parse_element_type(element_type),
                                .metric = parse_metric(metric),
                                .target_recall = target_recall,
                                .queries = parse_query_pattern(queries),
                                .expected_queries = expected_queries};
  const Context context = context_for(settings);
  const IndexChoice choice = without_lock([&] { return choose_index(context, request); });
  nb::list estimates;
  for (const IndexEstimate& estimate : choice.estimates) estimates.append(to_dict(estimate));
  return nb::make_tuple(estimates, choice.reason, choice.table());
}

}  // namespace

void bind_choose_index(nb::module_& module) {
  module.def("choose_index", choose, nb::arg("rows"), nb::arg("dim"), nb::arg("element_type"),
             nb::arg("metric"), nb::arg("target_recall"), nb::arg("queries"), nb::arg("expected_queries"),
             nb::arg("settings"));
}

}  // namespace nearwise::python

// Smoothest paths for Python.
#include "nearwise/graph/smoothest_path.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>

#include "bindings.h"
#include "results.h"

namespace nearwise::python {
namespace {

// rows, distances, widest
using FoundPath = std::tuple<NumpyVector<Id>, NumpyVector<float>, std::optional<float>>;

std::optional<FoundPath> find_path(const NumpyMatrix<const Id>& ids,
                                   const NumpyMatrix<const float>& distances, const std::string& metric,
                                   Id from, Id to) {
  std::optional<SmoothestPath> path = result_of({}, nb::none(), graph_steps(ids), [&](const Context& own) {
    return smoothest_path(to_knn_graph(own, ids, distances, metric), from, to);
  });
  if (!path) return std::nullopt;
  return FoundPath{to_numpy<Id>(std::move(path->rows)), to_numpy<float>(std::move(path->distances)),
                   path->widest};
}

}  // namespace

void bind_smoothest_path(nb::module_& module) {
  module.def("smoothest_path", find_path, nb::arg("ids"), nb::arg("distances"), nb::arg("metric"),
             nb::arg("start"), nb::arg("end"),
             "rows, distances and the widest of them; None: there is no path");
}

}  // namespace nearwise::python

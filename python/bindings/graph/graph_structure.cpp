// Components, near duplicates and mutual neighbours for Python.
#include "nearwise/graph/graph_structure.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bindings.h"
#include "results.h"

namespace nearwise::python {
namespace {

// labels and sizes
using Groups = std::pair<NumpyVector<Id>, NumpyVector<std::int64_t>>;

Groups to_numpy_groups(RowGroups&& groups) {
  return {to_numpy<Id>(std::move(groups.labels)), to_numpy<std::int64_t>(std::move(groups.sizes))};
}

// Returns work(graph), run as `run_by_size` runs it.
template <typename Work>
auto on_graph(const NumpyMatrix<const Id>& ids, const NumpyMatrix<const float>& distances,
              const std::string& metric, const Work& work) {
  return result_of({}, nb::none(), graph_steps(ids),
                   [&](const Context& own) { return work(to_knn_graph(own, ids, distances, metric)); });
}

Groups components(const NumpyMatrix<const Id>& ids, const NumpyMatrix<const float>& distances,
                  const std::string& metric) {
  return to_numpy_groups(on_graph(ids, distances, metric, connected_components));
}

Groups duplicates(const NumpyMatrix<const Id>& ids, const NumpyMatrix<const float>& distances,
                  const std::string& metric, float distance) {
  return to_numpy_groups(on_graph(ids, distances, metric, [distance](const KnnGraph& graph) {
    return near_duplicates(graph, distance);
  }));
}

NumpyRangeNeighbors mutual(const NumpyMatrix<const Id>& ids, const NumpyMatrix<const float>& distances,
                           const std::string& metric) {
  return to_numpy(on_graph(ids, distances, metric, mutual_neighbors));
}

}  // namespace

void bind_graph_structure(nb::module_& module) {
  module.def("connected_components", components, nb::arg("ids"), nb::arg("distances"), nb::arg("metric"),
             "labels [rows] and sizes");
  module.def("near_duplicates", duplicates, nb::arg("ids"), nb::arg("distances"), nb::arg("metric"),
             nb::arg("distance"), "labels [rows], -1 for none, and sizes");
  module.def("mutual_neighbors", mutual, nb::arg("ids"), nb::arg("distances"), nb::arg("metric"),
             "offsets [rows + 1], ids and distances");
}

}  // namespace nearwise::python

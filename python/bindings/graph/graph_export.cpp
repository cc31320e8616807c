// Graphs as sparse matrices, for Python.
#include "nearwise/graph/graph_export.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "nearwise/graph/graph_structure.h"

namespace nearwise::python {
namespace {

void save_matrix(const std::filesystem::path& path, const NumpyMatrix<const Id>& ids,
                 const NumpyMatrix<const float>& distances, const std::string& metric, bool mutual) {
  run(context_for({}), nb::none(), [&](const Context& own) {
    const KnnGraph graph = to_knn_graph(own, ids, distances, metric);
    if (mutual)
      save_csr(mutual_neighbors(graph), graph.rows(), path);
    else
      save_csr(graph, path);
  });
}

}  // namespace

void bind_graph_export(nb::module_& module) {
  module.def("save_csr", save_matrix, nb::arg("path"), nb::arg("ids"), nb::arg("distances"),
             nb::arg("metric"), nb::arg("mutual"));
}

}  // namespace nearwise::python

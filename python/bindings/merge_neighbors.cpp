// Merging of search results for Python.
#include "nearwise/merge_neighbors.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "results.h"

namespace nearwise::python {
namespace {

template <typename T>
using ContiguousMatrix = nb::ndarray<nb::numpy, const T, nb::ndim<2>, nb::c_contig>;
using Part = std::pair<ContiguousMatrix<Id>, ContiguousMatrix<float>>;

template <typename T>
MatrixView<const T> view_of(const ContiguousMatrix<T>& array) {
  return {array.data(), array.shape(0), array.shape(1)};
}

NumpyNeighbors merge_parts(const std::vector<Part>& parts, std::uint64_t k, const std::string& metric,
                           const Settings& settings, nb::handle progress) {
  std::vector<NeighborsView> views;
  double entries = 0;
  for (const auto& [ids, distances] : parts) {
    views.push_back({view_of<Id>(ids), view_of<float>(distances)});
    entries += static_cast<double>(ids.size());
  }
  return to_numpy(result_of(settings, progress, entries, [&](const Context& own) {
    return merge_neighbors(own, parse_metric(metric), views, k);
  }));
}

}  // namespace

void bind_merge_neighbors(nb::module_& module) {
  module.def("merge_neighbors", merge_parts, nb::arg("parts"), nb::arg("k"), nb::arg("metric"),
             nb::arg("settings"), nb::arg("progress").none(), "ids and distances [queries, k]");
}

}  // namespace nearwise::python

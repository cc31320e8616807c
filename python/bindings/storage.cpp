// Saved objects for Python.
#include "nearwise/storage.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "bindings.h"
#include "nearwise/dedup.h"
#include "nearwise/graph/knn_graph.h"
#include "nearwise/graph_index.h"
#include "nearwise/ivf.h"
#include "nearwise/quantize/additive_quantizer.h"
#include "nearwise/quantize/optimized_product_quantizer.h"
#include "nearwise/quantize/product_quantizer.h"
#include "results.h"

namespace nearwise::python {
namespace {

using Provenance = std::map<std::string, std::string>;

void save_result(const std::filesystem::path& path, const NumpyMatrix<const Id>& ids,
                 const NumpyMatrix<const float>& distances, const std::string& metric,
                 const Provenance& provenance) {
  run(context_for({}), nb::none(), [&](const Context& own) {
    save(SavedNeighbors{to_neighbors(own, ids, distances), parse_metric(metric), provenance}, path);
  });
}

std::tuple<NumpyNeighbors, std::string, Provenance> load_result(const std::filesystem::path& path) {
  SavedNeighbors read = result_of([&] { return load_neighbors(path); });
  return {to_numpy(std::move(read.neighbors)), std::string(name(read.metric)), std::move(read.provenance)};
}

using Offsets = nb::ndarray<nb::numpy, const std::uint64_t, nb::ndim<1>, nb::c_contig>;

void save_all_names(const std::filesystem::path& path, const Offsets& offsets, const nb::bytes& text) {
  const SavedNames names = {.offsets = {offsets.data(), offsets.data() + offsets.size()},
                            .text = {text.c_str(), text.size()}};
  run([&] { save(names, path); });
}

std::pair<NumpyVector<std::uint64_t>, nb::bytes> load_all_names(const std::filesystem::path& path) {
  SavedNames names = result_of([&] { return load_names(path); });
  return {to_numpy<std::uint64_t>(std::move(names.offsets)), nb::bytes(names.text.data(), names.text.size())};
}

bool has_section(const ContainerInfo& info, std::string_view name) {
  return std::ranges::any_of(info.sections, [&](const SectionInfo& section) { return section.name == name; });
}

ContainerInfo verify_file(const std::filesystem::path& path) {
  return result_of({}, nb::none(), [&](const Context& context) {
    ContainerInfo info = inspect(path);
    // Loading verifies all checksums, and the structure that they do not cover.
    if (info.kind == "ivf")
      load_ivf(context, path);
    else if (info.kind == "graph_index")
      load_graph_index(context, path);
    else if (info.kind == "graph")
      load_knn_graph(path);
    else if (info.kind == "pairs")
      load_pairs(path);
    else if (info.kind == "deduplication")
      load_deduplication(path);
    else if (info.kind == "additive_quantizer")
      load_additive_quantizer(path);
    else if (info.kind == "product_quantizer" && has_section(info, "rotation"))
      load_optimized_product_quantizer(path);
    else if (info.kind == "product_quantizer")
      load_product_quantizer(path);
    else
      info = verify(path);
    return info;
  });
}

std::string describe(const SectionInfo& section) {
  return "SectionInfo(name='" + section.name + "', offset=" + std::to_string(section.offset) +
         ", bytes=" + std::to_string(section.bytes) + ", blocks=" + std::to_string(section.blocks) + ")";
}

std::string describe(const ContainerInfo& info) {
  return "ContainerInfo(kind='" + info.kind + "', version=" + std::to_string(info.version_major) + "." +
         std::to_string(info.version_minor) + ", bytes=" + std::to_string(info.bytes) + ", " +
         std::to_string(info.sections.size()) + " sections)";
}

}  // namespace

void bind_storage(nb::module_& module) {
  nb::class_<SectionInfo>(module, "SectionInfo", "One section of a saved file.")
      .def_ro("name", &SectionInfo::name)
      .def_ro("offset", &SectionInfo::offset)
      .def_ro("bytes", &SectionInfo::bytes)
      .def_ro("blocks", &SectionInfo::blocks, "checksummed blocks")
      .def("__repr__", [](const SectionInfo& section) { return describe(section); });
  nb::class_<ContainerInfo>(module, "ContainerInfo", "Header, metadata and sections of a saved file.")
      .def_ro("kind", &ContainerInfo::kind)
      .def_ro("version_major", &ContainerInfo::version_major)
      .def_ro("version_minor", &ContainerInfo::version_minor)
      .def_ro("bytes", &ContainerInfo::bytes)
      .def_ro("metadata", &ContainerInfo::metadata)
      .def_ro("sections", &ContainerInfo::sections)
      .def("__repr__", [](const ContainerInfo& info) { return describe(info); });
  module.def("save_neighbors", save_result, nb::arg("path"), nb::arg("ids"), nb::arg("distances"),
             nb::arg("metric"), nb::arg("provenance"));
  module.def("load_neighbors", load_result, nb::arg("path"), "((ids, distances), metric, provenance)");
  module.def("save_names", save_all_names, nb::arg("path"), nb::arg("offsets").noconvert(), nb::arg("text"));
  module.def("load_names", load_all_names, nb::arg("path"), "(offsets [names + 1], text)");
  module.def("inspect", inspect, nb::arg("path"), nb::call_guard<nb::gil_scoped_release>());
  module.def("verify", verify_file, nb::arg("path"));
}

}  // namespace nearwise::python

// Filters for Python.
#include "nearwise/filter.h"

#include <nanobind/stl/optional.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bindings.h"

namespace nearwise::python {
namespace {

template <typename T>
using Values = nb::ndarray<nb::numpy, const T, nb::ndim<1>, nb::c_contig>;

template <typename T>
std::span<const T> span_of(const Values<T>& values) {
  return {values.data(), values.size()};
}

std::vector<std::size_t> offsets_of(const Values<std::int64_t>& offsets) {
  return {offsets.data(), offsets.data() + offsets.size()};
}

}  // namespace

void bind_filter(nb::module_& module) {
  nb::class_<Filter>(module, "Filter", "The ids that a search may return.")
      .def(nb::init<>(), "Allows every id.")
      .def_static(
          "mask", [](const Values<std::uint8_t>& mask) { return Filter::mask(span_of(mask)); },
          nb::arg("mask"))
      .def_static(
          "allow", [](const Values<Id>& ids) { return Filter::allow(span_of(ids)); }, nb::arg("ids"))
      .def_static(
          "deny", [](const Values<Id>& ids) { return Filter::deny(span_of(ids)); }, nb::arg("ids"))
      .def_static(
          "allow_per_query",
          [](const Values<std::int64_t>& offsets, const Values<Id>& ids) {
            return Filter::allow_per_query(offsets_of(offsets), span_of(ids));
          },
          nb::arg("offsets"), nb::arg("ids"))
      .def_static(
          "deny_per_query",
          [](const Values<std::int64_t>& offsets, const Values<Id>& ids) {
            return Filter::deny_per_query(offsets_of(offsets), span_of(ids));
          },
          nb::arg("offsets"), nb::arg("ids"))
      .def("both", &Filter::operator&, nb::arg("other"), "Allows what both allow.")
      .def("from_id", &Filter::from_id, nb::arg("first"), "For ids that begin with `first`.")
      .def("from_query", &Filter::from_query, nb::arg("first"), nb::arg("count"), "For some of the queries.")
      .def("allows", &Filter::allows, nb::arg("id"), nb::arg("query"))
      .def_prop_ro("queries", &Filter::queries, "Queries of per-query lists; None: any number.");
}

}  // namespace nearwise::python

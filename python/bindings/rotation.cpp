// nearwise::Rotation for Python.
#include "nearwise/quantize/rotation.h"

#include <nanobind/stl/string.h>

#include <optional>

#include "bindings.h"
#include "quantizing.h"

namespace nearwise::python {
namespace {

Rotation pca(const BorrowedRows& rows, std::uint64_t dims, std::uint64_t training_rows,
             const Settings& settings, nb::handle progress) {
  const Context context = context_for(settings);
  std::optional<Rotation> found;
  run_by_size(
      context, progress, elements_of(rows.view()) * static_cast<double>(rows.view().dim()),
      [&](const Context& own) {
        found.emplace(Rotation::pca(own, rows.view(), dims, {.training_rows = optional_of(training_rows)}));
      });
  return std::move(*found);
}

Rotation from_matrix(std::uint64_t dim, std::uint64_t rotated_dim, const NumberList& matrix,
                     const NumberList& mean) {
  return Rotation::from_matrix(dim, rotated_dim, span_of(matrix), span_of(mean));
}

template <auto member>
NumpyMatrix<float> rotated(const Rotation& rotation, const BorrowedRows& rows, const Settings& settings,
                           nb::handle progress) {
  const Context context = context_for(settings);
  std::optional<Matrix<float>> found;
  run_by_size(context, progress,
              static_cast<double>(rows.view().rows()) * static_cast<double>(rotation.matrix().size()),
              [&](const Context& own) { found = (rotation.*member)(own, rows.view()); });
  return to_numpy(std::move(*found));
}

}  // namespace

void bind_rotation(nb::module_& module) {
  nb::class_<Rotation>(module, "Rotation", "Orthonormal axes and a mean.")
      .def_static("pca", pca, nb::arg("rows"), nb::arg("dims"), nb::arg("training_rows"), nb::arg("settings"),
                  nb::arg("progress").none())
      .def_static("from_matrix", from_matrix, nb::arg("dim"), nb::arg("rotated_dim"), nb::arg("matrix"),
                  nb::arg("mean"))
      .def("apply", rotated<&Rotation::apply>, nb::arg("rows"), nb::arg("settings"),
           nb::arg("progress").none(), "[rows, rotated_dim]")
      .def("reverse", rotated<&Rotation::reverse>, nb::arg("rows"), nb::arg("settings"),
           nb::arg("progress").none(), "[rows, dim]")
      .def_prop_ro("dim", &Rotation::dim)
      .def_prop_ro("rotated_dim", &Rotation::rotated_dim)
      .def(
          "matrix", [](const Rotation& rotation) { return copied(rotation.matrix()); },
          "[1, rotated_dim * dim]")
      .def(
          "mean", [](const Rotation& rotation) { return copied(rotation.mean()); }, "[1, dim]");
}

}  // namespace nearwise::python

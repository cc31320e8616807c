// Selection for Python.
#include "nearwise/select_k.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "bindings.h"
#include "nearwise/error.h"
#include "results.h"

namespace nearwise::python {
namespace {

// [rows, columns], or [columns] for one row.
template <typename T>
MatrixView<const T> view_of(const Tensor& array) {
  const std::size_t last = array.ndim() - 1;
  const std::size_t rows = last == 0 ? 1 : array.shape(0);
  const std::size_t cols = array.shape(last);
  // The strides of an axis with less than two elements mean nothing.
  const bool adjacent = rows == 0 || cols < 2 || array.stride(last) == 1;
  const bool apart = rows < 2 || array.stride(0) >= static_cast<std::int64_t>(cols);
  const bool aligned = reinterpret_cast<std::uintptr_t>(array.data()) % alignof(T) == 0;
  if (!adjacent || !apart || !aligned)
    throw Error(ErrorCode::invalid_argument,
                "ids: rows must be aligned and must not overlap, their elements must be adjacent");
  return {static_cast<const T*>(array.data()), rows, cols,
          rows < 2 ? cols : static_cast<std::size_t>(array.stride(0)), place_of(array)};
}

// Dispatches on the width of the ids, if there are any.
Selection select(const Context& context, const MatrixView<const float>& values,
                 const std::optional<Tensor>& ids, std::size_t k, const SelectOptions& options) {
  if (!ids) return select_k(context, values, k, options);
  if (ids->ndim() != 1 && ids->ndim() != 2)
    throw Error(ErrorCode::invalid_argument, "ids: expected an array [rows, columns] or [columns]");
  if (ids->dtype() == nb::dtype<Id>()) return select_k(context, values, view_of<Id>(*ids), k, options);
  if (ids->dtype() == nb::dtype<std::uint32_t>())
    return select_k(context, values, view_of<std::uint32_t>(*ids), k, options);
  throw Error(ErrorCode::invalid_argument, "ids: the array holds neither int64 nor uint32 elements");
}

std::optional<Tensor> ids_of(nb::handle ids) {
  if (ids.is_none()) return {};
  if (nb::isinstance<DeviceArray>(ids)) return nb::cast<const DeviceArray&>(ids).tensor();
  Tensor array;
  if (!nb::try_cast(ids, array)) throw nb::type_error("ids: expected an array");
  return array;
}

NumpyNeighbors select_arrays(const BorrowedRows& values, nb::handle ids, std::uint64_t k, bool largest,
                             bool pad, const Settings& settings, nb::handle progress) {
  const SelectOptions options{.order = largest ? Order::largest : Order::smallest,
                              .short_rows = pad ? ShortRows::pad : ShortRows::refuse};
  const RowsView& rows = values.view();
  if (rows.type() != ElementType::f32)
    throw Error(ErrorCode::invalid_argument, "values: expected f32 elements");
  const MatrixView<const float> view(reinterpret_cast<const float*>(rows.data()), rows.rows(), rows.dim(),
                                     rows.stride_bytes() / sizeof(float), rows.place());
  const std::optional<Tensor> column_ids = ids_of(ids);
  const double steps = static_cast<double>(view.rows()) * static_cast<double>(view.cols());
  Selection found = result_of(settings, progress, steps,
                              [&](const Context& own) { return select(own, view, column_ids, k, options); });
  return {to_numpy(std::move(found.ids)), to_numpy(std::move(found.values))};
}

}  // namespace

void bind_select_k(nb::module_& module) {
  module.def("select_k", select_arrays, nb::arg("values"), nb::arg("ids").none(), nb::arg("k"),
             nb::arg("largest"), nb::arg("pad"), nb::arg("settings"), nb::arg("progress").none(),
             "ids and values [rows, k]");
}

}  // namespace nearwise::python

// Arrays in and out: numpy arrays by the buffer protocol, tensors of other libraries by DLPack.
#include "nearwise/matrix.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <vector>

#include "bindings.h"
#include "nearwise/error.h"

namespace nearwise::python {
namespace {

// Of a copy, between two checks of cancellation: about a millisecond.
constexpr std::size_t elements_per_check = std::size_t{1} << 18;

[[noreturn]] void refuse(const char* name, const std::string& message) {
  throw Error(ErrorCode::invalid_argument, std::string(name) + ": " + message);
}

// Format characters of Python's struct module, after an optional prefix of native byte order.
bool holds(const Py_buffer& buffer, ElementType type) {
  std::string_view format = buffer.format == nullptr ? "B" : buffer.format;
  if (!format.empty() && (format.front() == '@' || format.front() == '=')) format.remove_prefix(1);
  switch (type) {
    case ElementType::f32: return format == "f";
    case ElementType::f16: return format == "e";
    case ElementType::bf16: return format == "H";
    case ElementType::u8: return format == "B";
    case ElementType::i8: return format == "b";
  }
  return false;
}

bool is_bfloat16(nb::dlpack::dtype dtype) {
  return dtype.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bfloat) && dtype.bits == 16;
}

// Python decides which of these to accept.
bool numpy_knows(nb::dlpack::dtype dtype) {
  using Code = nb::dlpack::dtype_code;
  switch (static_cast<Code>(dtype.code)) {
    case Code::Int:
    case Code::UInt:
    case Code::Complex:
    case Code::Bool: return true;
    case Code::Float: return dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
    default: return false;
  }
}

// A read-only numpy array over a tensor's memory, and whether its uint16 elements are bfloat16.
std::pair<ReadOnlyArray, bool> view_dlpack(const nb::ndarray<nb::ro>& tensor, const std::string& name) {
  if (tensor.device_type() != nb::device::cpu::value && tensor.device_type() != nb::device::cuda_host::value)
    refuse(name.c_str(), "the tensor is not in host memory");
  const bool bfloat16 = is_bfloat16(tensor.dtype());
  if (tensor.dtype().lanes != 1 || !(bfloat16 || numpy_knows(tensor.dtype())))
    refuse(name.c_str(), "the tensor's element type has no numpy counterpart");
  std::vector<std::size_t> shape(tensor.ndim());
  for (std::size_t axis = 0; axis < shape.size(); ++axis) shape[axis] = tensor.shape(axis);
  // The capsule holds a reference of the tensor's handle, which keeps the producer's memory alive.
  using Tensor = nb::ndarray<nb::ro>;
  const nb::capsule owner(new Tensor(tensor), [](void* held) noexcept { delete static_cast<Tensor*>(held); });
  const ReadOnlyArray array(tensor.data(), shape.size(), shape.data(), owner, tensor.stride_ptr(),
                            bfloat16 ? nb::dtype<std::uint16_t>() : tensor.dtype(), nb::device::cpu::value);
  return {array, bfloat16};
}

}  // namespace

RowsView checked_rows(const ArrayLayout& layout, ElementType type, const char* name) {
  if (layout.shape.size() != 2)
    refuse(name, "expected a 2-D array, got " + std::to_string(layout.shape.size()) + "-D");
  const auto element_bytes = static_cast<std::int64_t>(element_size(type));
  const std::int64_t rows = layout.shape[0];
  const std::int64_t dim = layout.shape[1];
  // The strides of an axis with less than two elements mean nothing.
  const bool adjacent = rows == 0 || dim < 2 || layout.strides[1] == element_bytes;
  const bool apart = rows < 2 || dim == 0 || layout.strides[0] >= dim * element_bytes;
  const bool aligned = reinterpret_cast<std::uintptr_t>(layout.data) % element_bytes == 0 &&
                       (rows < 2 || layout.strides[0] % element_bytes == 0);
  if (!adjacent || !apart || !aligned)
    refuse(name, "rows must be aligned and must not overlap, their elements must be adjacent");
  const std::int64_t stride = rows < 2 ? dim * element_bytes : layout.strides[0];
  return {layout.data,
          type,
          static_cast<std::size_t>(rows),
          static_cast<std::size_t>(dim),
          static_cast<std::size_t>(stride),
          layout.place};
}

BorrowedRows::BorrowedRows(nb::handle array, ElementType type, const char* name) {
  if (nb::isinstance<DeviceArray>(array)) {
    device_array_ = nb::borrow(array);
    view_ = nb::cast<const DeviceArray&>(array).rows(type, name);
    return;
  }
  if (PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_FORMAT | PyBUF_STRIDES) != 0) throw nb::python_error();
  try {
    if (buffer_.itemsize != static_cast<Py_ssize_t>(element_size(type)) || !holds(buffer_, type))
      refuse(name, "the array does not hold " + std::string(nearwise::name(type)) + " elements");
    const auto axes = static_cast<std::size_t>(buffer_.ndim);
    view_ = checked_rows({buffer_.buf, std::vector<std::int64_t>(buffer_.shape, buffer_.shape + axes),
                          std::vector<std::int64_t>(buffer_.strides, buffer_.strides + axes), Place{}},
                         type, name);
  } catch (...) {
    PyBuffer_Release(&buffer_);
    throw;
  }
}

// Releasing a buffer that was never filled is allowed.
BorrowedRows::~BorrowedRows() { PyBuffer_Release(&buffer_); }

NumpyNeighbors to_numpy(Neighbors&& neighbors) {
  return {to_numpy(std::move(neighbors.ids)), to_numpy(std::move(neighbors.distances))};
}

NumpyRangeNeighbors to_numpy(RangeNeighbors&& found) {
  return {to_numpy<std::int64_t>(std::move(found.offsets)), to_numpy<Id>(std::move(found.ids)),
          to_numpy<float>(std::move(found.distances))};
}

template <typename T>
Matrix<T> to_matrix(const Context& context, const NumpyMatrix<const T>& array) {
  Matrix<T> matrix(array.shape(0), array.shape(1));
  const auto view = array.view();
  const std::size_t rows_per_check = std::max<std::size_t>(1, elements_per_check / (matrix.cols() + 1));
  for (std::size_t row = 0; row < matrix.rows(); ++row) {
    if (row % rows_per_check == 0 && context.cancelled())
      throw Error(ErrorCode::cancelled, "stopped: the operation was cancelled");
    for (std::size_t col = 0; col < matrix.cols(); ++col) matrix(row, col) = view(row, col);
  }
  return matrix;
}
template Matrix<Id> to_matrix(const Context& context, const NumpyMatrix<const Id>& array);

Neighbors to_neighbors(const Context& context, const NumpyMatrix<const Id>& ids,
                       const NumpyMatrix<const float>& distances) {
  return {to_matrix(context, ids), to_matrix(context, distances)};
}

KnnGraph to_knn_graph(const Context& context, const NumpyMatrix<const Id>& ids,
                      const NumpyMatrix<const float>& distances, const std::string& metric) {
  return {.neighbors = to_neighbors(context, ids, distances), .metric = parse_metric(metric), .report = {}};
}

void bind_matrix(nb::module_& module) {
  nb::class_<BorrowedRows>(module, "Rows", "A matrix of vectors, borrowed from an array.")
      .def(
          "__init__",
          [](BorrowedRows* self, nb::handle array, const std::string& type, const std::string& name) {
            new (self) BorrowedRows(array, parse_element_type(type), name.c_str());
          },
          nb::arg("array"), nb::arg("type"), nb::arg("name"))
      .def_prop_ro("shape",
                   [](const BorrowedRows& rows) { return std::pair(rows.view().rows(), rows.view().dim()); });
  module.def(
      "view_dlpack", view_dlpack, nb::arg("tensor"), nb::arg("name"),
      "A read-only numpy array over a host tensor's memory, and whether its uint16 elements are bfloat16.");
}

}  // namespace nearwise::python

// Arrays on CUDA devices, shared by DLPack or by the CUDA array interface.
#include "nearwise/device_memory.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "bindings.h"
#include "nearwise/cuda_device.h"
#include "nearwise/error.h"

namespace nearwise::python {
namespace {

using Code = nb::dlpack::dtype_code;

constexpr std::uint8_t code_of(Code code) { return static_cast<std::uint8_t>(code); }

nb::dlpack::dtype dtype_of(ElementType type) {
  switch (type) {
    case ElementType::f32: return {code_of(Code::Float), 32, 1};
    case ElementType::f16: return {code_of(Code::Float), 16, 1};
    case ElementType::bf16: return {code_of(Code::Bfloat), 16, 1};
    case ElementType::u8: return {code_of(Code::UInt), 8, 1};
    case ElementType::i8: return {code_of(Code::Int), 8, 1};
  }
  return {};
}

// numpy's name of the type.
std::string name_of(nb::dlpack::dtype dtype) {
  const auto kind = [&]() -> std::string {
    switch (static_cast<Code>(dtype.code)) {
      case Code::Int: return "int";
      case Code::UInt: return "uint";
      case Code::Float: return "float";
      case Code::Bfloat: return "bfloat";
      case Code::Complex: return "complex";
      case Code::Bool: return "bool";
      default: return "DLPack type " + std::to_string(dtype.code) + " of bits ";
    }
  }();
  const std::string lanes = dtype.lanes == 1 ? "" : "x" + std::to_string(dtype.lanes);
  return kind + std::to_string(dtype.bits) + lanes;
}

// From the fields of the CUDA array interface; strides in elements. `owner` keeps the memory alive.
DeviceArray describe_array(std::uintptr_t address, const std::vector<std::size_t>& shape,
                           const std::vector<std::int64_t>& strides, std::uint8_t code, std::uint8_t bits,
                           int ordinal, nb::handle owner) {
  if (strides.size() != shape.size())
    throw Error(ErrorCode::invalid_argument, "array: shape and strides must have the same length");
  return DeviceArray(Tensor(reinterpret_cast<const void*>(address), shape.size(), shape.data(), owner,
                            strides.data(), nb::dlpack::dtype{code, bits, 1}, nb::device::cuda::value,
                            ordinal));
}

nb::tuple shape_of(const DeviceArray& array) {
  nb::list axes;
  for (std::size_t axis = 0; axis < array.tensor().ndim(); ++axis) axes.append(array.tensor().shape(axis));
  return nb::tuple(axes);
}

nb::tuple strides_of(const DeviceArray& array) {
  nb::list axes;
  for (std::size_t axis = 0; axis < array.tensor().ndim(); ++axis)
    axes.append(array.tensor().stride(axis) * static_cast<std::int64_t>(array.tensor().itemsize()));
  return nb::tuple(axes);
}

ExchangeStream open_exchange(const std::string& device) {
  return ExchangeStream(context_for({.device = device}));
}

void wait_on(const std::string& device, std::uintptr_t stream) {
  const Context context = context_for({.device = device});
  const nb::gil_scoped_release unlocked;
  wait_for_stream(context, stream);
}

// Python sees an object that has DLPack and no arithmetic.
using SharedCopy = nb::ndarray<nb::array_api, nb::ro>;

// A copy on a device, in memory that lives as long as the array.
SharedCopy copy_to_device(const nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>& array,
                          const std::string& device) {
  const Context context = context_for({.device = device});
  std::unique_ptr<DeviceCopy> copy;
  {
    const nb::gil_scoped_release unlocked;
    copy = std::make_unique<DeviceCopy>(
        context, std::span(static_cast<const std::byte*>(array.data()), array.nbytes()));
  }
  const std::byte* const data = copy->data();
  const nb::capsule owner(copy.get(), [](void* held) noexcept { delete static_cast<DeviceCopy*>(held); });
  static_cast<void>(copy.release());  // owned by the capsule
  std::vector<std::size_t> shape;
  for (std::size_t axis = 0; axis < array.ndim(); ++axis) shape.push_back(array.shape(axis));
  return SharedCopy(data, shape.size(), shape.data(), owner, nullptr, array.dtype(), nb::device::cuda::value,
                    context.place().ordinal);
}

}  // namespace

Place place_of(const Tensor& tensor) {
  switch (const int type = tensor.device_type(); type) {
    case nb::device::cpu::value:
    case nb::device::cuda_host::value: return {};
    case nb::device::cuda::value:
    case nb::device::cuda_managed::value: return {DeviceKind::cuda, tensor.device_id()};
    default:
      throw Error(ErrorCode::invalid_argument, "the array is on a device of DLPack type " +
                                                   std::to_string(type) + ", which is not supported");
  }
}

RowsView DeviceArray::rows(ElementType type, const char* name) const {
  const nb::dlpack::dtype expected = dtype_of(type);
  const nb::dlpack::dtype given = tensor_.dtype();
  if (given.code != expected.code || given.bits != expected.bits || given.lanes != expected.lanes)
    throw Error(ErrorCode::invalid_argument, std::string(name) + ": the array holds " + name_of(given) +
                                                 ", not " + std::string(nearwise::name(type)));
  std::vector<std::int64_t> shape(tensor_.ndim());
  std::vector<std::int64_t> strides(tensor_.ndim());
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    shape[axis] = static_cast<std::int64_t>(tensor_.shape(axis));
    strides[axis] = tensor_.stride(axis) * static_cast<std::int64_t>(tensor_.itemsize());
  }
  return checked_rows({tensor_.data(), shape, strides, place_of(tensor_)}, type, name);
}

void bind_device_memory(nb::module_& module) {
  nb::class_<DeviceArray>(module, "DeviceArray", "An array on a CUDA device, shared by another library.")
      .def(nb::init<Tensor>(), nb::arg("tensor"))
      .def_prop_ro("shape", shape_of)
      .def_prop_ro("strides", strides_of, "bytes")
      .def_prop_ro("ndim", [](const DeviceArray& array) { return array.tensor().ndim(); })
      .def_prop_ro("itemsize", [](const DeviceArray& array) { return array.tensor().itemsize(); })
      .def_prop_ro("dtype", [](const DeviceArray& array) { return name_of(array.tensor().dtype()); })
      .def_prop_ro(
          "address",
          [](const DeviceArray& array) { return reinterpret_cast<std::uintptr_t>(array.tensor().data()); })
      .def_prop_ro("device", [](const DeviceArray& array) { return name(place_of(array.tensor())); });
  module.def("describe_device_array", describe_array, nb::arg("address"), nb::arg("shape"),
             nb::arg("strides"), nb::arg("code"), nb::arg("bits"), nb::arg("ordinal"), nb::arg("owner"),
             "A DeviceArray of memory at an address; strides in elements, code and bits as in DLPack.");
  module.def("copy_to_device", copy_to_device, nb::arg("array"), nb::arg("device"),
             "A copy of an array in host memory on a CUDA device, shared by DLPack.");
  nb::class_<ExchangeStream>(module, "ExchangeStream",
                             "A stream on which another library completes its work.")
      .def(
          "__init__",
          [](ExchangeStream* self, const std::string& device) {
            new (self) ExchangeStream(open_exchange(device));
          },
          nb::arg("device"))
      .def_prop_ro("handle", &ExchangeStream::handle)
      .def("wait", &ExchangeStream::wait, nb::call_guard<nb::gil_scoped_release>());
  module.def("wait_for_stream", wait_on, nb::arg("device"), nb::arg("stream"),
             "Waits for the work queued on a stream of the device.");
  module.def(
      "device_of",
      [](std::uintptr_t address) { return name(nearwise::place_of(reinterpret_cast<const void*>(address))); },
      nb::arg("address"), "The device that owns the memory at an address, or cpu.");
}

}  // namespace nearwise::python

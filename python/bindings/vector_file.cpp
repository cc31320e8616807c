// Vector and neighbor files for Python.
#include "nearwise/vector_file.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "results.h"

namespace nearwise::python {
namespace {

// numpy has no bfloat16: uint16 holds its bits.
nb::dlpack::dtype stored_type(ElementType type) {
  switch (type) {
    case ElementType::f32: return nb::dtype<float>();
    case ElementType::f16: return {static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
    case ElementType::bf16: return nb::dtype<std::uint16_t>();
    case ElementType::u8: return nb::dtype<std::uint8_t>();
    case ElementType::i8: return nb::dtype<std::int8_t>();
  }
  return {};
}

// A read-only array over the mapped file, which lives as long as the array, and the element type's name.
std::pair<ReadOnlyArray, std::string> map_vectors(const std::filesystem::path& path) {
  auto* const file = new VectorFile(without_lock([&] { return VectorFile::open(path); }));
  const nb::capsule owner(file, [](void* held) noexcept { delete static_cast<VectorFile*>(held); });
  const RowsView rows = file->rows();
  const std::size_t shape[] = {rows.rows(), rows.dim()};
  const std::int64_t strides[] = {static_cast<std::int64_t>(rows.stride_bytes() / element_size(rows.type())),
                                  1};
  const ReadOnlyArray array(rows.data(), 2, shape, owner, strides, stored_type(rows.type()),
                            nb::device::cpu::value);
  return {array, std::string(name(rows.type()))};
}

// For vectors of this type and dimension.
void open_writer(VectorWriter* writer, const std::filesystem::path& path, const BorrowedRows& vectors) {
  new (writer) VectorWriter(path, vectors.view().type(), vectors.view().dim());
}

NumpyNeighbors read_result(const std::filesystem::path& path) {
  return to_numpy(result_of([&] { return read_neighbors(path); }));
}

void write_result(const std::filesystem::path& path, const NumpyMatrix<const Id>& ids,
                  const NumpyMatrix<const float>& distances) {
  run(context_for({}), nb::none(),
      [&](const Context& own) { write_neighbors(path, to_neighbors(own, ids, distances)); });
}

}  // namespace

void bind_vector_file(nb::module_& module) {
  module.def("map_vectors", map_vectors, nb::arg("path"),
             "A read-only array over the file, and its element type.");
  nb::class_<VectorWriter>(module, "VectorWriter", "Without commit() no file appears.")
      .def("__init__", open_writer, nb::arg("path"), nb::arg("vectors"))
      .def(
          "append",
          [](VectorWriter& writer, const BorrowedRows& vectors) {
            run([&] { writer.append(vectors.view()); });
          },
          nb::arg("vectors"))
      .def("commit", [](VectorWriter& writer) { run([&] { writer.commit(); }); });
  module.def("read_neighbors", read_result, nb::arg("path"),
             "ids and distances; distances are 0 x 0 if not stored");
  module.def("write_neighbors", write_result, nb::arg("path"), nb::arg("ids"), nb::arg("distances"));
}

}  // namespace nearwise::python

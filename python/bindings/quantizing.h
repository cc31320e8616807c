// Shared by the bindings of quantizers and rotations.
#pragma once

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "bindings.h"
#include "nearwise/error.h"
#include "nearwise/matrix.h"
#include "results.h"

namespace nearwise::python {

// A copy as a numpy array [1, count].
inline NumpyMatrix<float> copied(std::span<const float> numbers) {
  Matrix<float> copy(1, numbers.size());
  std::copy(numbers.begin(), numbers.end(), copy.data());
  return to_numpy(std::move(copy));
}

using NumberList = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline std::span<const float> span_of(const NumberList& numbers) { return {numbers.data(), numbers.size()}; }

// Throws Error(invalid_argument) unless the elements are bytes.
inline MatrixView<const std::uint8_t> codes_of(const BorrowedRows& rows) {
  const RowsView& view = rows.view();
  if (view.type() != ElementType::u8) throw Error(ErrorCode::invalid_argument, "codes: expected u8 elements");
  return {reinterpret_cast<const std::uint8_t*>(view.data()), view.rows(), view.dim(), view.stride_bytes(),
          view.place()};
}

inline double elements_of(const RowsView& rows) {
  return static_cast<double>(rows.rows()) * static_cast<double>(rows.dim());
}

// The methods of product quantizers, plain and optimized. Their step counts only separate short calls from
// long ones.

inline constexpr double most_centroids = 256;

template <typename Quantizer>
NumpyMatrix<std::uint8_t> encode(const Quantizer& quantizer, const BorrowedRows& rows,
                                 const Settings& settings, nb::handle progress) {
  return to_numpy(result_of(settings, progress, elements_of(rows.view()) * most_centroids,
                            [&](const Context& own) { return quantizer.encode(own, rows.view()); }));
}

template <typename Quantizer>
NumpyMatrix<float> decode(const Quantizer& quantizer, const BorrowedRows& codes, const Settings& settings,
                          nb::handle progress) {
  return to_numpy(result_of(settings, progress, elements_of(codes.view()) * 8,
                            [&](const Context& own) { return quantizer.decode(own, codes_of(codes)); }));
}

template <typename Quantizer>
NumpyMatrix<float> tables(const Quantizer& quantizer, const BorrowedRows& queries, const std::string& metric,
                          const Settings& settings, nb::handle progress) {
  const Metric parsed = parse_metric(metric);
  return to_numpy(
      result_of(settings, progress, elements_of(queries.view()) * most_centroids,
                [&](const Context& own) { return quantizer.tables(own, queries.view(), parsed); }));
}

template <typename Quantizer>
double error(const Quantizer& quantizer, const BorrowedRows& rows, const Settings& settings,
             nb::handle progress) {
  return result_of(settings, progress, elements_of(rows.view()) * most_centroids,
                   [&](const Context& own) { return quantizer.error(own, rows.view()); });
}

template <typename Quantizer>
void bind_coding(nb::class_<Quantizer>& bound) {
  bound
      .def("encode", encode<Quantizer>, nb::arg("rows"), nb::arg("settings"), nb::arg("progress").none(),
           "codes [rows, code_bytes]")
      .def("decode", decode<Quantizer>, nb::arg("codes"), nb::arg("settings"), nb::arg("progress").none(),
           "rows [codes, dim]")
      .def("tables", tables<Quantizer>, nb::arg("queries"), nb::arg("metric"), nb::arg("settings"),
           nb::arg("progress").none(), "entries [queries, parts * centroids]")
      .def("error", error<Quantizer>, nb::arg("rows"), nb::arg("settings"), nb::arg("progress").none(),
           "the mean over the rows");
}

// `save`, and `load` as a static method.
template <typename Quantizer, Quantizer (*load)(const std::filesystem::path&)>
void bind_file(nb::class_<Quantizer>& bound) {
  using Provenance = std::map<std::string, std::string>;
  bound
      .def(
          "save",
          [](const Quantizer& quantizer, const std::filesystem::path& path, const Provenance& provenance) {
            save(quantizer, path, provenance);
          },
          nb::arg("path"), nb::arg("provenance"), nb::call_guard<nb::gil_scoped_release>())
      .def_static("load", load, nb::arg("path"), nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace nearwise::python

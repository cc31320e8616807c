// What the bindings of quantizers and rotations share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "bindings.h"
#include "nearwise/matrix.h"

namespace nearwise::python {

// Numbers of a class that others cannot change, as a numpy array of [1, count]: a copy.
inline NumpyMatrix<float> copied(std::span<const float> numbers) {
  Matrix<float> copy(1, numbers.size());
  std::copy(numbers.begin(), numbers.end(), copy.data());
  return to_numpy(std::move(copy));
}

using NumberList = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline std::span<const float> span_of(const NumberList& numbers) { return {numbers.data(), numbers.size()}; }

// Codes borrowed as rows of bytes.
inline MatrixView<const std::uint8_t> codes_of(const BorrowedRows& rows) {
  const RowsView& view = rows.view();
  return {reinterpret_cast<const std::uint8_t*>(view.data()), view.rows(), view.dim(), view.stride_bytes(),
          view.place()};
}

inline double elements_of(const RowsView& rows) {
  return static_cast<double>(rows.rows()) * static_cast<double>(rows.dim());
}

// What is done with a quantizer, plain or optimized. Steps of work are rough: they tell what is over in a millisecond.

inline constexpr double most_centroids = 256;

template <typename Quantizer>
NumpyMatrix<std::uint8_t> encode(const Quantizer& quantizer, nb::handle rows, const std::string& rows_type,
                                 const std::string& device, int threads, std::uint64_t memory_limit,
                                 const std::string& isa, nb::handle progress) {
  const Context context = context_for(device, threads, memory_limit, isa);
  const BorrowedRows borrowed(rows, parse_element_type(rows_type), "rows");
  std::optional<Matrix<std::uint8_t>> codes;
  run_by_size(context, progress, elements_of(borrowed.view()) * most_centroids,
              [&](const Context& own) { codes = quantizer.encode(own, borrowed.view()); });
  return to_numpy(std::move(*codes));
}

template <typename Quantizer>
NumpyMatrix<float> decode(const Quantizer& quantizer, nb::handle codes, const std::string& device,
                          int threads, std::uint64_t memory_limit, const std::string& isa,
                          nb::handle progress) {
  const Context context = context_for(device, threads, memory_limit, isa);
  const BorrowedRows borrowed(codes, ElementType::u8, "codes");
  std::optional<Matrix<float>> rows;
  run_by_size(context, progress, elements_of(borrowed.view()) * 8,
              [&](const Context& own) { rows = quantizer.decode(own, codes_of(borrowed)); });
  return to_numpy(std::move(*rows));
}

template <typename Quantizer>
NumpyMatrix<float> tables(const Quantizer& quantizer, nb::handle queries, const std::string& queries_type,
                          const std::string& metric, const std::string& device, int threads,
                          std::uint64_t memory_limit, const std::string& isa, nb::handle progress) {
  const Metric parsed = parse_metric(metric);
  const Context context = context_for(device, threads, memory_limit, isa);
  const BorrowedRows borrowed(queries, parse_element_type(queries_type), "queries");
  std::optional<Matrix<float>> found;
  run_by_size(context, progress, elements_of(borrowed.view()) * most_centroids,
              [&](const Context& own) { found = quantizer.tables(own, borrowed.view(), parsed); });
  return to_numpy(std::move(*found));
}

template <typename Quantizer>
double error(const Quantizer& quantizer, nb::handle rows, const std::string& rows_type,
             const std::string& device, int threads, std::uint64_t memory_limit, const std::string& isa,
             nb::handle progress) {
  const Context context = context_for(device, threads, memory_limit, isa);
  const BorrowedRows borrowed(rows, parse_element_type(rows_type), "rows");
  double found = 0;
  run_by_size(context, progress, elements_of(borrowed.view()) * most_centroids,
              [&](const Context& own) { found = quantizer.error(own, borrowed.view()); });
  return found;
}

template <typename Quantizer>
void bind_coding(nb::class_<Quantizer>& bound) {
  bound
      .def("encode", encode<Quantizer>, nb::arg("rows"), nb::arg("rows_type"), nb::arg("device"),
           nb::arg("threads"), nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none(),
           "codes [rows, code_bytes]")
      .def("decode", decode<Quantizer>, nb::arg("codes"), nb::arg("device"), nb::arg("threads"),
           nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none(), "rows [codes, dim]")
      .def("tables", tables<Quantizer>, nb::arg("queries"), nb::arg("queries_type"), nb::arg("metric"),
           nb::arg("device"), nb::arg("threads"), nb::arg("memory_limit"), nb::arg("isa"),
           nb::arg("progress").none(), "entries [queries, parts * centroids]")
      .def("error", error<Quantizer>, nb::arg("rows"), nb::arg("rows_type"), nb::arg("device"),
           nb::arg("threads"), nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none(),
           "the mean over the rows");
}

}  // namespace nearwise::python

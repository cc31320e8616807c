// The vectors of a benchmark, from a file or from the generators of the tests, converted to an element type.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/convert.h"
#include "harness/command_line.h"
#include "nearwise/nearwise.h"
#include "support/half.h"
#include "support/problems.h"

namespace nearwise::bench {

// Rows of any element type, with their memory.
class OwnedRows {
 public:
  OwnedRows(ElementType type, std::size_t rows, std::size_t dim)
      : type_(type), dim_(dim), bytes_(rows, dim * element_size(type)) {}
  std::span<std::byte> row(std::size_t index) { return bytes_.row(index); }
  operator RowsView() const { return {bytes_.data(), type_, bytes_.rows(), dim_, bytes_.cols()}; }

 private:
  ElementType type_;
  std::size_t dim_;
  Matrix<std::byte> bytes_;
};

inline void assign(float& out, float value) { out = value; }
inline void assign(Float16& out, float value) { out = support::to_float16(value); }
inline void assign(BFloat16& out, float value) { out = support::to_bfloat16(value); }
template <typename Integer>
void assign(Integer& out, float value) {
  out = static_cast<Integer>(value);
  if (static_cast<float>(out) != value) throw std::runtime_error("the data does not fit the element type");
}

// Writes rows to out, [rows, dim].
template <typename T>
void convert(const RowsView& rows, T* out) {
  visit_element_type(rows.type(), [&](auto from) {
    for (std::size_t row = 0; row < rows.rows(); ++row)
      for (std::size_t i = 0; i < rows.dim(); ++i) assign(*out++, element<decltype(from)>(rows.row(row), i));
  });
}

inline Matrix<float> to_floats(const RowsView& rows) {
  Matrix<float> out(rows.rows(), rows.dim());
  convert(rows, out.data());
  return out;
}

inline OwnedRows converted(const RowsView& rows, ElementType type) {
  OwnedRows out(type, rows.rows(), rows.dim());
  visit_element_type(type, [&](auto to) {
    if (rows.rows() != 0) convert(rows, reinterpret_cast<decltype(to)*>(out.row(0).data()));
  });
  return out;
}

struct Data {
  OwnedRows base;
  OwnedRows queries;
  std::string name;
};

inline Data generated(const Options& options) {
  const std::string kind = options.text("data", "uniform");
  const std::map<std::string, support::Kind> kinds = {{"uniform", support::Kind::uniform},
                                                      {"normal", support::Kind::normal},
                                                      {"clusters", support::Kind::near_duplicates},
                                                      {"offset", support::Kind::offset_1e4}};
  if (!kinds.contains(kind)) throw std::runtime_error("--data: no such kind: " + kind);
  const std::size_t rows = options.number("rows", 1'000'000);
  const std::size_t queries = options.number("queries", 10'000);
  // One set, so that queries of `clusters` are in the clusters of the base.
  const support::Rows all(support::generate(kinds.at(kind), rows + queries, options.number("dim", 128), 1),
                          options.type());
  return {converted(all.view().slice(0, rows), options.type()),
          converted(all.view().slice(rows, queries), options.type()), kind};
}

inline OwnedRows read_rows(const Options& options, const char* file_option, const char* limit) {
  const VectorFile file = VectorFile::open(options.text(file_option, ""));
  const std::size_t rows = std::min(file.rows().rows(), options.number(limit, SIZE_MAX));
  return converted(file.rows().slice(0, rows), options.type());
}

inline OwnedRows load_rows(const Options& options) {
  return options.has("base") ? read_rows(options, "base", "rows") : std::move(generated(options).base);
}

inline Data load_data(const Options& options) {
  if (!options.has("base")) return generated(options);
  const std::string path = options.text("base", "");
  return {read_rows(options, "base", "rows"), read_rows(options, "query-file", "queries"),
          path.substr(path.rfind('/') + 1)};
}

// The shape of a benchmark, the beginning of every report.
inline nlohmann::json shape_of(const RowsView& rows, const Context& context) {
  return {{"version", version()},      {"rows", rows.rows()},          {"dim", rows.dim()},
          {"type", name(rows.type())}, {"threads", context.threads()}, {"isa", context.isa()}};
}

}  // namespace nearwise::bench

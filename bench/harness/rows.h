// The vectors of a benchmark, from a file or from the generators of the tests, converted to an element type.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "core/convert.h"
#include "harness/command_line.h"
#include "nearwise/nearwise.h"
#include "support/half.h"
#include "support/problems.h"

namespace nearwise::bench {

// Rows of any element type, with their memory.
class OwnedRows {
 public:
  template <typename T>
  explicit OwnedRows(Matrix<T> matrix) : matrix_(std::move(matrix)) {}
  operator RowsView() const {
    return std::visit([](const auto& matrix) { return RowsView(matrix); }, matrix_);
  }

 private:
  std::variant<Matrix<float>, Matrix<Float16>, Matrix<BFloat16>, Matrix<std::uint8_t>, Matrix<std::int8_t>>
      matrix_;
};

inline void assign(float& out, float value) { out = value; }
inline void assign(Float16& out, float value) { out = support::to_float16(value); }
inline void assign(BFloat16& out, float value) { out = support::to_bfloat16(value); }
template <typename Integer>
void assign(Integer& out, float value) {
  out = static_cast<Integer>(value);
  if (static_cast<float>(out) != value) throw std::runtime_error("the data does not fit the element type");
}

template <typename T>
Matrix<T> converted(const RowsView& rows) {
  Matrix<T> out(rows.rows(), rows.dim());
  visit_element_type(rows.type(), [&](auto from) {
    for (std::size_t row = 0; row < rows.rows(); ++row)
      for (std::size_t i = 0; i < rows.dim(); ++i)
        assign(out(row, i), element<decltype(from)>(rows.row(row), i));
  });
  return out;
}

inline OwnedRows converted(const RowsView& rows, ElementType type) {
  return visit_element_type(type, [&](auto to) { return OwnedRows(converted<decltype(to)>(rows)); });
}

struct Data {
  OwnedRows base;
  OwnedRows queries;
  std::string name;
};

struct NamedKind {
  const char* name;
  support::Kind kind;
};
inline constexpr std::array generated_kinds = {
    NamedKind{"uniform", support::Kind::uniform}, NamedKind{"normal", support::Kind::normal},
    NamedKind{"clusters", support::Kind::near_duplicates}, NamedKind{"offset", support::Kind::offset_1e4}};

inline Data generated(const Options& options) {
  const std::string kind = options.text("data", "uniform");
  const auto* found =
      std::ranges::find_if(generated_kinds, [&](const NamedKind& each) { return each.name == kind; });
  if (found == generated_kinds.end()) throw std::runtime_error("--data: no such kind: " + kind);
  const std::size_t rows = options.number("rows", 1'000'000);
  const std::size_t queries = options.number("queries", 10'000);
  // One set, so that queries of `clusters` are in the clusters of the base.
  const support::Rows all(support::generate(found->kind, rows + queries, options.number("dim", 128), 1),
                          options.type());
  return {converted(all.view().slice(0, rows), options.type()),
          converted(all.view().slice(rows, queries), options.type()), kind};
}

inline OwnedRows read_rows(const Options& options, const char* file_option, const char* limit) {
  const VectorFile file = VectorFile::open(options.text(file_option, ""));
  const std::size_t rows = std::min(file.rows().rows(), options.number(limit, SIZE_MAX));
  return converted(file.rows().slice(0, rows), options.type());
}

// --base FILE, or --data KIND --dim D; --rows limits either.
inline OwnedRows load_rows(const Options& options) {
  return options.has("base") ? read_rows(options, "base", "rows") : std::move(generated(options).base);
}

// --base FILE --query-file FILE, or --data KIND --dim D; --rows and --queries limit either.
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

// The vectors of a benchmark: from a file, or made by the generators of the tests, in the element type that is asked for.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "core/convert.h"
#include "harness/command_line.h"
#include "nearwise/matrix.h"
#include "nearwise/vector_file.h"
#include "support/half.h"
#include "support/problems.h"

namespace nearwise::bench {

// Rows of any element type, in memory of their own.
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

inline Data generated(const Options& options, ElementType type) {
  const std::string wanted = options.text("data", "uniform");
  const auto* found = std::ranges::find_if(
      generated_kinds, [&](const NamedKind& candidate) { return candidate.name == wanted; });
  if (found == generated_kinds.end()) throw std::runtime_error("--data: no such kind: " + wanted);
  const std::size_t rows = options.number("rows", 1'000'000);
  const std::size_t queries = options.number("queries", 10'000);
  // One set, so that queries of `clusters` lie in the clusters of the base.
  const support::Rows all(support::generate(found->kind, rows + queries, options.number("dim", 128), 1),
                          type);
  return {converted(all.view().slice(0, rows), type), converted(all.view().slice(rows, queries), type),
          wanted};
}

// --base FILE --query-file FILE, or --data KIND --dim D; --rows and --queries limit either.
inline Data load_data(const Options& options, ElementType type) {
  if (!options.has("base")) return generated(options, type);
  const auto read = [&](const char* option, const char* limit) {
    const VectorFile file = VectorFile::open(options.text(option, ""));
    const std::size_t rows = std::min(file.rows().rows(), options.number(limit, SIZE_MAX));
    return converted(file.rows().slice(0, rows), type);
  };
  const std::string path = options.text("base", "");
  return {read("base", "rows"), read("query-file", "queries"), path.substr(path.rfind('/') + 1)};
}

}  // namespace nearwise::bench

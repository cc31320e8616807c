// Codes, tables and rotations that any seeded bug must corrupt: prints "clean" or the finding. Linked like
// driver.cu.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "backend/cuda/seeded_bugs/is_right.h"
#include "backend/dispatch.h"
#include "nearwise/quantize/rotation.h"
#include "support/quantizer_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Rows;

Matrix<double> cross_products(const Context& context, const Rows& rows) {
  const MatrixView<const float> matrix(reinterpret_cast<const float*>(rows.view().data()), rows.rows(),
                                       rows.view().dim());
  Matrix<double> sums(matrix.cols(), matrix.cols());
  const auto stream = open_stream(context);
  dispatch(&Ops::cross_products, "cross_products", *stream, CrossProductsArgs{matrix, matrix, sums.view()});
  return sums;
}

// Codewords that are permutations of each other, and rows with equal elements: distances differ only by
// rounding.
bool equal_distances_are_right() {
  constexpr std::size_t dim = 11;
  const support::Values base = support::generate(Kind::normal, 1, dim, 5);
  std::vector<float> codewords;
  for (std::size_t word = 0; word < 16; ++word)
    for (std::size_t i = 0; i < dim; ++i) codewords.push_back(static_cast<float>(base(0, (i + word) % dim)));
  const ProductQuantizer quantizer = ProductQuantizer::from_codebooks(dim, 1, 4, codewords);
  std::vector<float> rows;
  for (std::size_t row = 0; row < 40; ++row) rows.insert(rows.end(), dim, 0.1F * static_cast<float>(row));
  return is_right("equal distances", [&](const Context& context) {
    return quantizer.encode(context, MatrixView<const float>(rows.data(), 40, dim));
  });
}

// Products cancel: the sum depends on their order.
bool cancelling_products_are_right() {
  constexpr std::size_t dim = 11;
  support::Values values = support::generate(Kind::normal, 16, dim, 6);
  std::vector<float> codewords;
  for (std::size_t word = 0; word < 16; ++word)
    for (std::size_t i = 0; i < dim; ++i)
      codewords.push_back(static_cast<float>(values(word, i) + (i == 1 ? 1e17 : i == 4 ? -1e17 : 0)));
  const ProductQuantizer quantizer = ProductQuantizer::from_codebooks(dim, 1, 4, codewords);
  const std::vector<float> ones(2 * dim, 1.0F);
  return is_right("products", [&](const Context& context) {
    return quantizer.tables(context, MatrixView<const float>(ones.data(), 2, dim), Metric::inner_product);
  });
}

bool all_are_right(Kind kind) {
  const Rows rows(support::generate(kind, 70, 11, 1), ElementType::f32);
  const Rotation rotation = Rotation::pca(Context::cpu({.threads = 1}), rows, 7);
  const ProductQuantizer quantizer = support::untrained(kind, 11, 3, 4, 2);
  constexpr std::uint64_t several_tiles = 3'500;
  return is_right("codes", [&](const Context& context) { return quantizer.encode(context, rows); }) &&
         is_right("tables", [&](const Context& context) { return quantizer.tables(context, rows); }) &&
         is_right("rotation", [&](const Context& context) { return rotation.apply(context, rows); }) &&
         is_right(
             "cross products", [&](const Context& context) { return cross_products(context, rows); },
             several_tiles);
}

}  // namespace
}  // namespace nearwise

int main() {
  using nearwise::support::Kind;
  for (const Kind kind : {Kind::normal, Kind::integers})
    if (!nearwise::all_are_right(kind)) return 0;
  if (!nearwise::equal_distances_are_right() || !nearwise::cancelling_products_are_right()) return 0;
  std::printf("clean\n");
  return 0;
}

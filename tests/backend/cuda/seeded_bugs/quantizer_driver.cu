// Codes, tables and rotations that any bug in the kernels must spoil: says "clean", or what it found. Linked as driver.cu is.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "backend/dispatch.h"
#include "cuda_emulation/control.h"
#include "nearwise/rotation.h"
#include "support/quantizer_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Rows;

// Whether work(context) gives the CPU's matrix; says what was found if not.
template <typename Work>
bool is_right(const char* what, const Work& work) {
  try {
    const testing::AssertionResult match =
        support::same(support::to_vector(work(Context::cpu({.threads = 1}))),
                      work(Context::cuda(0, {.threads = 1, .memory_limit = 20'000})));
    if (match) return true;
    std::printf("found: wrong answer: %s: %s\n", what, match.message());
  } catch (const std::exception& error) {
    const std::string report = cuda_emulation::take_report();
    std::printf("%s: %s: %s\n", report.empty() ? "error" : "found",
                report.empty() ? error.what() : report.c_str(), what);
  }
  return false;
}

Matrix<double> cross_products(const Context& context, const Rows& rows) {
  const MatrixView<const float> matrix(reinterpret_cast<const float*>(rows.view().data()), rows.rows(),
                                       rows.view().dim());
  Matrix<double> sums(matrix.cols(), matrix.cols());
  const auto stream = open_stream(context);
  dispatch(&Ops::cross_products, "cross_products", *stream, CrossProductsArgs{matrix, matrix, sums.view()});
  return sums;
}

bool all_are_right(Kind kind) {
  const Rows rows(support::generate(kind, 70, 11, 1), ElementType::f32);
  const Rotation rotation = Rotation::pca(Context::cpu({.threads = 1}), rows, 7);
  const ProductQuantizer one_part = support::untrained(kind, 11, 1, 4, 3);
  const ProductQuantizer parts = support::untrained(kind, 11, 3, 4, 2);
  return is_right("codes", [&](const Context& context) { return parts.encode(context, rows); }) &&
         is_right("codes of one part",
                  [&](const Context& context) { return one_part.encode(context, rows); }) &&
         is_right("tables", [&](const Context& context) { return one_part.tables(context, rows); }) &&
         is_right("rotation", [&](const Context& context) { return rotation.apply(context, rows); }) &&
         is_right("products", [&](const Context& context) { return cross_products(context, rows); });
}

}  // namespace
}  // namespace nearwise

int main() {
  using nearwise::support::Kind;
  for (const Kind kind : {Kind::normal, Kind::integers, Kind::near_duplicates, Kind::cancelling})
    if (!nearwise::all_are_right(kind)) return 0;
  std::printf("clean\n");
  return 0;
}

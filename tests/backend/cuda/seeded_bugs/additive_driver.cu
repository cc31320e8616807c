// Additive codes that any seeded bug must corrupt: prints "clean" or the finding. Linked like driver.cu.
#include <cstdint>
#include <cstdio>

#include "backend/cuda/seeded_bugs/is_right.h"
#include "support/additive_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Rows;

constexpr std::uint64_t any_memory = 0;

// Row counts that leave blocks partly filled, dimensions that are no multiple of half a warp.
bool codes_are_right(Kind kind, std::size_t dim, std::size_t codebooks) {
  const Rows rows(support::generate(kind, 19, dim, 1), ElementType::f32);
  const AdditiveQuantizer quantizer = support::untrained_additive(kind, dim, codebooks, 2);
  return is_right(
      "codes",
      [&](const Context& context) {
        return quantizer.encode(context, rows, {.iterations = 4, .passes = 3, .perturbed = 2});
      },
      any_memory);
}

// Rows far from any sum of codewords: they are shrunk, and sums of their entries saturate.
bool far_rows_are_right() {
  const AdditiveQuantizer quantizer = support::saturating_additive(3, 3);
  Matrix<float> rows(40, 1);
  for (std::size_t row = 0; row < rows.rows(); ++row) rows(row, 0) = 0.2F * static_cast<float>(row) - 4;
  return is_right(
      "far rows",
      [&](const Context& context) {
        return quantizer.encode(context, rows, {.iterations = 6, .passes = 1, .perturbed = 3});
      },
      any_memory);
}

}  // namespace
}  // namespace nearwise

int main() {
  using nearwise::support::Kind;
  if (!nearwise::codes_are_right(Kind::integers, 5, 3) || !nearwise::codes_are_right(Kind::normal, 37, 2) ||
      !nearwise::far_rows_are_right())
    return 0;
  std::printf("clean\n");
  return 0;
}

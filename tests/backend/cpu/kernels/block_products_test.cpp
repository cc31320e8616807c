// Products of f64 blocks on every instruction set against plain loops.
#include "backend/cpu/kernels/block_products.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "support/matrix_cases.h"

namespace nearwise::cpu {
namespace {

// Bit for bit: products and differences are rounded separately, in the order of the terms.
TEST(BlockProducts, SubtractsTermByTerm) {
  for (const std::size_t terms : {0UL, 1UL, 2UL, 31UL, 64UL}) {
    const std::vector<double> left = support::random_matrix(terms, block_width, 1);
    const std::vector<double> right = support::random_matrix(terms, block_width, 2);
    const std::vector<double> start = support::random_matrix(block_width, block_width, 3);
    std::vector<double> expected = start;
    for (std::size_t i = 0; i < block_width; ++i)
      for (std::size_t j = 0; j < block_width; ++j)
        for (std::size_t k = 0; k < terms; ++k) {
          const double term = left[k * block_width + i] * right[k * block_width + j];
          expected[i * block_width + j] -= term;
        }
    for (const InstructionSet set : available_instruction_sets()) {
      std::vector<double> sums = start;
      block_product_kernels(set).subtract(sums.data(), left.data(), right.data(), terms);
      EXPECT_EQ(sums, expected) << name(set) << " terms " << terms;
    }
  }
}

}  // namespace
}  // namespace nearwise::cpu

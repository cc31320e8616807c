// Codewords as the search for additive codes takes them, and its random numbers.
#include "codes/additive_codewords.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codes/additive_draws.h"

namespace nearwise {
namespace {

TEST(AdditiveCodewords, AroundTheMeanOfTheirCodebookInAUnitOfTheirOwn) {
  constexpr std::size_t dim = 3, count = 2;
  std::vector<float> given(count * additive_codebook_size * dim);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::size_t codeword = i / dim % additive_codebook_size;
    const double size = i / dim < additive_codebook_size ? 1000 : 1;
    given[i] = static_cast<float>(
        size * (static_cast<double>(i % dim) + std::sin(static_cast<double>(codeword * dim + i % dim))));
  }
  MemoryBudget budget(0);
  const AdditiveCodewords codewords(budget, dim, count, given);
  EXPECT_EQ(codewords.width(), 16U);
  EXPECT_EQ(std::exp2(std::round(std::log2(codewords.unit()))), codewords.unit()) << "a power of two";
  double squares = 0;
  for (std::size_t book = 0; book < count; ++book) {
    double longest = 0;
    for (std::size_t i = 0; i < dim; ++i) {
      double sum = 0;
      for (std::size_t codeword = 0; codeword < additive_codebook_size; ++codeword) {
        const std::size_t number = book * additive_codebook_size + codeword;
        const float element = codewords.codewords()[number * codewords.width() + i];
        EXPECT_EQ(element, codewords.columns()[(book * dim + i) * additive_codebook_size + codeword]);
        sum += static_cast<double>(element);
        longest = std::max(longest, static_cast<double>(codewords.norms()[number]));
      }
      EXPECT_NEAR(sum, 0, 1e-4);
    }
    squares += longest;
    // The largest entry of a row as long as may be still fits.
    const double most = longest + 2 * std::sqrt(longest) * codewords.longest();
    EXPECT_NEAR(most * static_cast<double>(codewords.scales()[book]), 32000, 10);
  }
  EXPECT_NEAR(codewords.longest(), std::sqrt(2 * squares), 1e-5);
  EXPECT_TRUE(codewords.longest() >= 1 && codewords.longest() < 4);
  for (std::size_t codeword = 0; codeword < count * additive_codebook_size; ++codeword)
    for (std::size_t i = dim; i < codewords.width(); ++i)
      EXPECT_EQ(codewords.codewords()[codeword * codewords.width() + i], 0);
}

TEST(AdditiveDraws, AsManyCodesAsWantedAndEachAsOften) {
  constexpr std::uint32_t books = 7, rows = 3000;
  for (const std::uint32_t wanted : {0U, 1U, 4U, 7U}) {
    std::vector<int> times(books, 0);
    for (std::uint32_t row = 0; row < rows; ++row) {
      std::uint32_t needed = wanted;
      for (std::uint32_t book = 0; book < books; ++book) {
        const std::uint32_t draw = perturbation_draws(row, 5, 1, book / 4)[book % 4];
        if (needed == 0 || !is_perturbed(draw, books - book, needed)) continue;
        --needed;
        ++times[book];
      }
      EXPECT_EQ(needed, 0U);
    }
    const double expected = static_cast<double>(rows) * wanted / books;
    for (const int each : times) EXPECT_NEAR(each, expected, 5 * std::sqrt(expected) + 0.5);
  }
}

TEST(AdditiveDraws, TheKeyTellsRowsApart) {
  const auto key = [](float first, float second) { return with_element(with_element(2, first), second); };
  EXPECT_EQ(key(0.0F, 1), key(-0.0F, 1));
  EXPECT_NE(key(1, 2), key(2, 1));
  EXPECT_NE(key(0, 0), with_element(1, 0));
}

}  // namespace
}  // namespace nearwise

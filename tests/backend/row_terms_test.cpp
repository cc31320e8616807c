// The numbers of rows of product codes that their scores share, against the decoded row in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "backend/lists.h"
#include "core/random.h"
#include "oracle/lists.h"

namespace nearwise {
namespace {

struct Codes {
  static constexpr std::size_t dim = 11;
  static constexpr std::size_t rows = 70;
  const unsigned bits;
  std::vector<std::size_t> begins = {0, 4, 5, 11};
  std::vector<float> books;
  std::vector<float> centroids;  // of two lists
  std::vector<float> centre;
  std::vector<std::uint8_t> codes;

  explicit Codes(unsigned code_bits) : bits(code_bits) {
    const Random random(5, bits);
    const auto value = [&](std::uint64_t index) { return static_cast<float>(random.uniform(index)) - 0.3F; };
    for (std::size_t i = 0; i < dim << bits; ++i) books.push_back(value(i));
    for (std::size_t i = 0; i < 2 * dim; ++i) centroids.push_back(3 * value(100'000 + i));
    for (std::size_t i = 0; i < dim; ++i) centre.push_back(2 * value(200'000 + i));
    for (std::size_t i = 0; i < rows * code_bytes(); ++i)
      codes.push_back(static_cast<std::uint8_t>(random.below(300'000 + i, 256)));
    if (bits == 4)  // the last half is nobody's
      for (std::size_t row = 0; row < rows; ++row) codes[2 * row + 1] &= 15U;
  }
  std::size_t code_bytes() const { return bits == 8 ? 3 : 2; }
  ListCodec codec() const {
    return {.dim = dim,
            .type = ElementType::f32,
            .code_bytes = code_bytes(),
            .part_begins = begins,
            .codebooks = books,
            .bits = bits,
            .centroids = {centroids.data(), 2, dim}};
  }
};

TEST(RowTerms, AreThoseOfTheDecodedRow) {
  for (const unsigned bits : {4U, 8U})
    for (const Metric metric : {Metric::sqeuclidean, Metric::euclidean, Metric::cosine}) {
      const Codes made(bits);
      const ListCodec codec = made.codec();
      ASSERT_TRUE(RowTerms::are_needed(codec, metric));
      const std::span<const float> centre =
          metric == Metric::cosine ? std::span<const float>() : std::span<const float>(made.centre);
      MemoryBudget budget;
      const ProductWords words(budget, codec, centre);
      RowTerms terms(budget, codec, words, metric, centre);
      for (const std::size_t list : {1UL, 0UL}) {
        std::vector<float> given(Codes::rows);
        terms.begin_list(list);
        terms.fill(reinterpret_cast<const std::byte*>(made.codes.data()), Codes::rows, given.data());
        for (std::size_t row = 0; row < Codes::rows; ++row) {
          const std::vector<double> decoded = oracle::decode_product(
              std::span(made.centroids).subspan(list * Codes::dim, Codes::dim), made.begins, made.books, bits,
              std::span(made.codes).subspan(row * made.code_bytes(), made.code_bytes()));
          double squares = 0;
          for (std::size_t i = 0; i < Codes::dim; ++i) {
            const double shifted = decoded[i] - (centre.empty() ? 0 : static_cast<double>(centre[i]));
            squares += shifted * shifted;
          }
          const double expected = metric == Metric::cosine ? std::sqrt(squares) : squares / 2;
          // A decoded row is rounded to f32 element by element, a term once.
          EXPECT_NEAR(given[row], expected, 1e-6 * (1 + expected)) << bits << " " << list << " " << row;
        }
      }
    }
}

TEST(RowTerms, AreNotNeededForProductsAndRows) {
  const Codes made(8);
  EXPECT_FALSE(RowTerms::are_needed(made.codec(), Metric::inner_product));
  ListCodec rows = made.codec();
  rows.part_begins = {};
  EXPECT_FALSE(RowTerms::are_needed(rows, Metric::sqeuclidean));
}

}  // namespace
}  // namespace nearwise

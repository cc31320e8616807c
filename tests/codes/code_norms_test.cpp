// The numbers of rows of codes that their scores share, against the decoded row in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "codes/code_norms.h"
#include "codes/codeword_tables.h"
#include "codes/list_codec.h"
#include "core/math/random.h"
#include "oracle/lists.h"

namespace nearwise {
namespace {

struct Codes {
  static constexpr std::size_t dim = 11;
  static constexpr std::size_t rows = 70;
  const unsigned bits;
  const bool additive;
  std::vector<std::size_t> begins = {0, 4, 5, 11};
  std::vector<float> books;
  std::vector<float> centroids;  // of two lists
  std::vector<float> centre;
  std::vector<std::uint8_t> codes;

  explicit Codes(unsigned code_bits, bool sums = false) : bits(code_bits), additive(sums) {
    const Random random(5, bits);
    const auto value = [&](std::uint64_t index) { return static_cast<float>(random.uniform(index)) - 0.3F; };
    for (std::size_t i = 0; i < (additive ? code_bytes() : 1) * dim << bits; ++i) books.push_back(value(i));
    for (std::size_t i = 0; i < 2 * dim; ++i) centroids.push_back(3 * value(100'000 + i));
    for (std::size_t i = 0; i < dim; ++i) centre.push_back(2 * value(200'000 + i));
    for (std::size_t i = 0; i < rows * code_bytes(); ++i)
      codes.push_back(static_cast<std::uint8_t>(random.below(300'000 + i, 256)));
    if (bits == 4)  // the last half is nobody's
      for (std::size_t row = 0; row < rows; ++row) codes[2 * row + 1] &= 15U;
  }
  std::size_t code_bytes() const { return bits == 8 ? 3 : 2; }
  ListCodec codec() const {
    return {.encoding = additive ? ListEncoding::lsq : ListEncoding::pq,
            .dim = dim,
            .type = ElementType::f32,
            .code_bytes = code_bytes(),
            .part_begins = additive ? std::span<const std::size_t>() : begins,
            .codewords = books,
            .bits = bits,
            .centroids = {centroids.data(), 2, dim}};
  }
  std::vector<double> decoded(std::size_t list, std::size_t row) const {
    const auto centroid = std::span(centroids).subspan(list * dim, dim);
    const auto code = std::span(codes).subspan(row * code_bytes(), code_bytes());
    return additive ? oracle::decode_additive(centroid, books, code)
                    : oracle::decode_product(centroid, begins, books, bits, code);
  }
};

TEST(CodeNorms, AreThoseOfTheDecodedRow) {
  for (const auto& [bits, additive] : {std::pair{4U, false}, {8U, false}, {8U, true}})
    for (const Metric metric : {Metric::sqeuclidean, Metric::euclidean, Metric::cosine}) {
      const Codes made(bits, additive);
      const ListCodec codec = made.codec();
      ASSERT_TRUE(CodeNorms::are_needed(codec, metric));
      const std::span<const float> centre =
          metric == Metric::cosine ? std::span<const float>() : std::span<const float>(made.centre);
      MemoryBudget budget;
      const CodewordTables codewords(budget, codec, centre);
      CodeNorms norms(budget, codec, codewords, metric, centre);
      for (const std::size_t list : {1UL, 0UL}) {
        std::vector<float> given(Codes::rows);
        norms.begin_list(list);
        norms.fill(reinterpret_cast<const std::byte*>(made.codes.data()), Codes::rows, given.data());
        for (std::size_t row = 0; row < Codes::rows; ++row) {
          const std::vector<double> decoded = made.decoded(list, row);
          double squares = 0;
          for (std::size_t i = 0; i < Codes::dim; ++i) {
            const double shifted = decoded[i] - (centre.empty() ? 0 : static_cast<double>(centre[i]));
            squares += shifted * shifted;
          }
          const double expected = metric == Metric::cosine ? std::sqrt(squares) : squares / 2;
          // A decoded row is rounded to f32 element by element, a term once.
          EXPECT_NEAR(given[row], expected, 1e-6 * (1 + expected))
              << bits << " " << additive << " " << list << " " << row;
        }
      }
    }
}

TEST(CodeNorms, AreNotNeededForProductsAndRows) {
  const Codes made(8);
  EXPECT_FALSE(CodeNorms::are_needed(made.codec(), Metric::inner_product));
  ListCodec rows = made.codec();
  rows.encoding = ListEncoding::flat;
  EXPECT_FALSE(CodeNorms::are_needed(rows, Metric::sqeuclidean));
  EXPECT_FALSE(CodeNorms::are_needed(Codes(8, true).codec(), Metric::inner_product));
}

}  // namespace
}  // namespace nearwise

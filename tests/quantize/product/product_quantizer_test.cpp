// Codes, decoded rows, tables and errors of product quantizers against their definitions in double precision.
#include "nearwise/quantize/product_quantizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/quantizer_cases.h"

namespace nearwise {
namespace {

using support::as_oracle;
using support::Kind;
using support::Rows;
using support::same;

struct Shape {
  std::size_t dim;
  std::size_t parts;
  unsigned bits;
};

// Whole and ragged parts, parts of one element, odd numbers of halves of bytes.
const std::vector<Shape> shapes = {{1, 1, 8},   {1, 1, 4},    {3, 2, 8},   {3, 3, 4},  {7, 2, 8},
                                   {7, 7, 8},   {7, 5, 4},    {17, 1, 8},  {17, 4, 8}, {17, 3, 4},
                                   {100, 7, 8}, {100, 33, 4}, {128, 16, 8}};

void expect_codes(const ProductQuantizer& quantizer, RowsView rows) {
  const oracle::Quantizer reference = as_oracle(quantizer);
  const std::vector<std::size_t> nearest = oracle::nearest_codewords(reference, rows);
  const std::vector<std::uint8_t> expected = oracle::pack(reference, nearest);
  for (const Context& context : support::every_instruction_set())
    EXPECT_TRUE(same(expected, quantizer.encode(context, rows))) << "at " << context.isa();
}

// Would catch: a screen that drops the nearest codeword, ties given to a later one, parts cut wrongly.
TEST(ProductQuantizerCodes, TheNearestCodewordOfEveryKindOfData) {
  std::uint64_t seed = 100;
  for (const Kind kind : support::every_kind)
    for (const Shape& shape : shapes) {
      SCOPED_TRACE(fmt::format("{} dim {} parts {} bits {}", name(kind), shape.dim, shape.parts, shape.bits));
      const ProductQuantizer quantizer = support::untrained(kind, shape.dim, shape.parts, shape.bits, ++seed);
      // 41 rows: groups of rows and a rest. Other rows than the codewords, and some of them.
      const Rows others(support::generate(kind, 41, shape.dim, ++seed), ElementType::f32);
      expect_codes(quantizer, others);
      const Rows own(support::generate(kind, 23, shape.dim, seed - 1), ElementType::f32);
      expect_codes(quantizer, own);
    }
}

TEST(ProductQuantizerCodes, EveryElementTypeAndLayout) {
  for (const ElementType type : support::every_type)
    for (const support::Layout layout :
         {support::Layout::dense, support::Layout::padded, support::Layout::unaligned})
      for (const std::size_t rows : {1UL, 3UL, 4UL, 130UL}) {
        SCOPED_TRACE(fmt::format("{} {} {} rows", name(type), name(layout), rows));
        const ProductQuantizer quantizer = support::untrained(Kind::normal, 19, 5, 8, 7);
        expect_codes(quantizer, Rows(support::generate(Kind::normal, rows, 19, 8), type, layout));
      }
}

// Codewords that differ in the last bit, and rows halfway between them: f32 sums cannot tell them apart.
TEST(ProductQuantizerCodes, CodewordsThatSinglePrecisionConfuses) {
  const std::size_t dim = 9;
  std::vector<float> codewords;
  for (std::size_t c = 0; c < 256; ++c)
    for (std::size_t i = 0; i < dim; ++i)
      codewords.push_back(1.0F + static_cast<float>((c * 37 + i * 11) % 5) * 0x1p-23F);
  const ProductQuantizer quantizer = ProductQuantizer::from_codebooks(dim, 1, 8, codewords);
  support::Values values = support::generate(Kind::uniform, 200, dim, 9);
  for (std::size_t row = 0; row < values.rows(); ++row)
    for (double& value : values.row(row)) value = row % 2 == 0 ? 1 + value * 4 * 0x1p-23 : 3 * value;
  expect_codes(quantizer, Rows(values, ElementType::f32));
}

TEST(ProductQuantizerCodes, NoRows) {
  const ProductQuantizer quantizer = support::untrained(Kind::normal, 6, 3, 4, 10);
  const Matrix<std::uint8_t> codes = quantizer.encode(Context::cpu(), Matrix<float>(0, 6));
  EXPECT_EQ(codes.rows(), 0U);
  EXPECT_EQ(codes.cols(), 2U);
  EXPECT_EQ(quantizer.decode(Context::cpu(), codes).rows(), 0U);
  EXPECT_EQ(quantizer.tables(Context::cpu(), Matrix<float>(0, 6)).rows(), 0U);
}

TEST(ProductQuantizerCodes, DecodedRowsAreTheirCodewordsAndHaveTheSameCode) {
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(fmt::format("dim {} parts {} bits {}", shape.dim, shape.parts, shape.bits));
    const ProductQuantizer quantizer =
        support::untrained(Kind::normal, shape.dim, shape.parts, shape.bits, 11);
    const oracle::Quantizer reference = as_oracle(quantizer);
    const Rows rows(support::generate(Kind::normal, 1500, shape.dim, 12), ElementType::f32);
    const Matrix<std::uint8_t> codes = quantizer.encode(Context::cpu(), rows);
    const Matrix<float> decoded = quantizer.decode(Context::cpu(), codes);
    const std::vector<double> expected =
        oracle::reconstruct(reference, oracle::nearest_codewords(reference, rows));
    EXPECT_TRUE(same(std::vector<float>(expected.begin(), expected.end()), decoded));
    EXPECT_TRUE(same(support::to_vector(codes), quantizer.encode(Context::cpu(), decoded)));
  }
}

TEST(ProductQuantizerTables, EntriesToTheBit) {
  std::uint64_t seed = 200;
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product})
    for (const Kind kind : support::every_kind)
      for (const Shape& shape : shapes) {
        SCOPED_TRACE(fmt::format("{} {} dim {} parts {}", name(metric), name(kind), shape.dim, shape.parts));
        const ProductQuantizer quantizer =
            support::untrained(kind, shape.dim, shape.parts, shape.bits, ++seed);
        const Rows queries(support::generate(kind, 3, shape.dim, ++seed), ElementType::f32);
        const std::vector<float> expected = oracle::tables(as_oracle(quantizer), queries, metric);
        for (const Context& context : support::every_instruction_set())
          EXPECT_TRUE(same(expected, quantizer.tables(context, queries, metric))) << "at " << context.isa();
      }
}

// What tables are for. Would catch: entries in another order than codes name them.
TEST(ProductQuantizerTables, EntriesOfACodeAddUpToTheDistance) {
  for (const ElementType type : {ElementType::f32, ElementType::bf16, ElementType::u8})
    for (const Shape& shape : shapes) {
      const ProductQuantizer quantizer =
          support::untrained(Kind::normal, shape.dim, shape.parts, shape.bits, 13);
      const Rows rows(support::generate(Kind::normal, 50, shape.dim, 14), type);
      const Rows queries(support::generate(Kind::normal, 11, shape.dim, 15), type);
      const Matrix<std::uint8_t> codes = quantizer.encode(Context::cpu(), rows);
      const Matrix<float> decoded = quantizer.decode(Context::cpu(), codes);
      for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product}) {
        const Matrix<float> tables = quantizer.tables(Context::cpu(), queries, metric);
        const std::vector<double> query_values = oracle::to_doubles(queries);
        const std::vector<double> row_values = oracle::to_doubles(decoded);
        for (std::size_t query = 0; query < queries.rows(); ++query)
          for (std::size_t row = 0; row < rows.rows(); ++row) {
            double sum = 0;
            double size = 0;
            for (std::size_t part = 0; part < shape.parts; ++part) {
              const unsigned byte = codes(row, shape.bits == 8 ? part : part / 2);
              const unsigned code = shape.bits == 8 ? byte : byte >> (part % 2 * 4) & 15U;
              const double entry = tables(query, part * quantizer.centroids() + code);
              sum += entry;
              size += std::abs(entry);
            }
            const std::span<const double> left(query_values.data() + query * shape.dim, shape.dim);
            const std::span<const double> right(row_values.data() + row * shape.dim, shape.dim);
            EXPECT_NEAR(sum, oracle::reported(metric, left, right), 1e-6 * size);
          }
      }
    }
}

TEST(ProductQuantizerError, IsTheMeanOverRows) {
  for (const ElementType type : {ElementType::f32, ElementType::bf16, ElementType::u8}) {
    const ProductQuantizer quantizer = support::untrained(Kind::normal, 17, 4, 4, 16);
    const Rows rows(support::generate(Kind::normal, 2500, 17, 17), type);
    const double expected = oracle::error(as_oracle(quantizer), rows);
    EXPECT_NEAR(quantizer.error(Context::cpu(), rows), expected, 1e-10 * expected);
  }
}

TEST(ProductQuantizerShape, PartsAreNearlyEqual) {
  const ProductQuantizer quantizer = support::untrained(Kind::normal, 17, 5, 4, 18);
  const std::vector<std::size_t> begins = {0, 4, 8, 11, 14};
  for (std::size_t part = 0; part < 5; ++part) {
    EXPECT_EQ(quantizer.part_begin(part), begins[part]);
    EXPECT_EQ(quantizer.part_dim(part), part < 2 ? 4U : 3U);
    EXPECT_EQ(quantizer.codebook(part).size(), 16 * quantizer.part_dim(part));
    EXPECT_EQ(quantizer.codebook(part).data(), quantizer.codebooks().data() + 16 * begins[part]);
  }
  EXPECT_EQ(quantizer.centroids(), 16U);
  EXPECT_EQ(quantizer.code_bytes(), 3U);
  EXPECT_EQ(support::untrained(Kind::normal, 17, 5, 8, 18).code_bytes(), 5U);
}

}  // namespace
}  // namespace nearwise

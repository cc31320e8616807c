// What training must achieve, and that nothing but rows, options and seed decides it.
//
// The suites named *Threads* are those that ThreadSanitizer runs.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "nearwise/kmeans.h"
#include "nearwise/quantize/product_quantizer.h"
#include "support/quantizer_cases.h"

namespace nearwise {
namespace {

using support::codewords_of;
using support::Kind;
using support::Rows;

// Every part is a k-means of its own, on rows that are no matrix of their own.
TEST(ProductQuantizerTraining, CodebooksAreTheCentroidsOfTheParts) {
  for (const std::size_t dim : {1UL, 3UL, 7UL, 17UL, 100UL})
    for (const ElementType type : {ElementType::f32, ElementType::bf16, ElementType::u8}) {
      const support::Values values = support::generate(Kind::normal, 300, dim, 30);
      const Rows rows(values, type, support::Layout::padded);
      const std::size_t parts = dim / 3 + 1;
      const ProductQuantizer trained =
          ProductQuantizer::train(Context::cpu(), rows, {.parts = parts, .bits = 4, .iterations = 5});
      EXPECT_EQ(trained.parts(), parts);
      for (std::size_t part = 0; part < parts; ++part) {
        support::Values piece(300, trained.part_dim(part));
        for (std::size_t row = 0; row < 300; ++row)
          for (std::size_t i = 0; i < piece.dim(); ++i)
            piece(row, i) = values(row, trained.part_begin(part) + i);
        const KMeans expected = train_kmeans(Context::cpu(), Rows(piece, type), 16, {.iterations = 5});
        EXPECT_EQ(std::memcmp(expected.centroids.data(), trained.codebook(part).data(),
                              trained.codebook(part).size_bytes()),
                  0)
            << "dim " << dim << " part " << part << " " << name(type);
      }
    }
}

TEST(ProductQuantizerTraining, PartsHaveAtMostFourElementsUnlessGiven) {
  const std::vector<std::pair<std::size_t, std::size_t>> expected = {{1, 1}, {4, 1}, {5, 2}, {100, 25}};
  for (const auto& [dim, parts] : expected) {
    const Rows rows(support::generate(Kind::normal, 20, dim, 31), ElementType::f32);
    EXPECT_EQ(ProductQuantizer::train(Context::cpu(), rows, {.bits = 4, .iterations = 1}).parts(), parts);
  }
}

// More bytes per code, less error. Would catch: parts or bits without effect.
TEST(ProductQuantizerTraining, ErrorFallsWithPartsBitsAndTraining) {
  const Rows rows(support::generate(Kind::normal, 3000, 24, 32), ElementType::f32);
  const auto error = [&](const ProductQuantizerOptions& options) {
    return ProductQuantizer::train(Context::cpu(), rows, options).error(Context::cpu(), rows);
  };
  double last = error({.parts = 1, .bits = 4});
  for (const std::size_t parts : {2UL, 5UL, 12UL, 24UL}) {
    const double finer = error({.parts = parts, .bits = 4});
    EXPECT_LT(finer, 0.97 * last) << parts << " parts";
    last = finer;
  }
  EXPECT_LT(error({.parts = 6, .bits = 8}), 0.7 * error({.parts = 6, .bits = 4}));
  EXPECT_LT(error({.parts = 6, .bits = 8, .iterations = 20}),
            error({.parts = 6, .bits = 8, .iterations = 1}));
}

// Each codeword has rows, hence as many values as codewords are told apart without error.
TEST(ProductQuantizerTraining, FewValuesAreKeptExactly) {
  const Rows rows(support::generate(Kind::integers, 2000, 6, 33), ElementType::f32);
  const ProductQuantizer single =
      ProductQuantizer::train(Context::cpu(), rows, {.parts = 6, .bits = 4, .iterations = 50});
  EXPECT_EQ(single.error(Context::cpu(), rows), 0);
}

TEST(ProductQuantizerTraining, TrainsOnSomeRowsDrawnByTheSeed) {
  const Rows rows(support::generate(Kind::normal, 4000, 8, 34), ElementType::f32);
  const ProductQuantizerOptions options = {.parts = 2, .bits = 4, .iterations = 1, .training_rows = 16};
  // 16 rows make 16 centroids: the codewords are parts of rows.
  const ProductQuantizer few = ProductQuantizer::train(Context::cpu({.seed = 1}), rows, options);
  const std::vector<double> values = oracle::to_doubles(rows);
  std::set<std::size_t> drawn;
  for (std::size_t c = 0; c < 16; ++c)
    for (std::size_t row = 0; row < 4000; ++row)
      if (static_cast<double>(few.codebook(0)[c * 4]) == values[row * 8] &&
          static_cast<double>(few.codebook(0)[c * 4 + 3]) == values[row * 8 + 3])
        drawn.insert(row);
  EXPECT_EQ(drawn.size(), 16U);
  // One from each of 16 equal parts of the rows.
  std::size_t index = 0;
  for (const std::size_t row : drawn) EXPECT_EQ(row / 250, index++);
  EXPECT_NE(codewords_of(few),
            codewords_of(ProductQuantizer::train(Context::cpu({.seed = 2}), rows, options)));
  EXPECT_EQ(codewords_of(few),
            codewords_of(ProductQuantizer::train(Context::cpu({.seed = 1}), rows, options)));
  // All rows are more than 16.
  EXPECT_NE(codewords_of(few), codewords_of(ProductQuantizer::train(
                                   Context::cpu({.seed = 1}), rows,
                                   {.parts = 2, .bits = 4, .iterations = 1, .training_rows = rows.rows()})));
}

TEST(ProductQuantizerThreads, AnyNumberOfThreadsAndInstructionSetGivesTheSameBytes) {
  for (const Kind kind : {Kind::exact_duplicates, Kind::offset_1e4}) {
    // More rows than a task takes, of errors too.
    const Rows rows(support::generate(kind, 1300, 7, 35), ElementType::f32);
    for (const unsigned bits : {4U, 8U}) {
      const ProductQuantizerOptions options = {
          .parts = 3, .bits = bits, .iterations = 2, .training_rows = bits == 4 ? 800UL : 768UL};
      const Context one = Context::cpu({.threads = 1});
      const ProductQuantizer expected = ProductQuantizer::train(one, rows, options);
      const std::vector<std::uint8_t> codes = support::to_vector(expected.encode(one, rows));
      const double error = expected.error(one, rows);
      std::vector<Context> contexts = support::every_instruction_set();
      contexts.push_back(Context::cpu({.threads = 2}));
      contexts.push_back(Context::cpu({.threads = 5}));
      for (const Context& context : contexts) {
        SCOPED_TRACE(fmt::format("{} {} threads {}", name(kind), context.threads(), context.isa()));
        const ProductQuantizer trained = ProductQuantizer::train(context, rows, options);
        EXPECT_EQ(codewords_of(trained), codewords_of(expected));
        EXPECT_TRUE(support::same(codes, trained.encode(context, rows)));
        EXPECT_EQ(trained.error(context, rows), error);
      }
    }
  }
}

}  // namespace
}  // namespace nearwise

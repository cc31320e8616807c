// Quantizers and rotations in a process whose floating-point modes are not the default ones: the same bytes.
#include <gtest/gtest.h>

#include <cfenv>
#include <cstdint>
#include <functional>
#include <vector>

#include "nearwise/quantize/optimized_product_quantizer.h"
#include "support/float_modes.h"
#include "support/quantizer_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Rows;

// Every number that the library returns for some rows.
struct Results {
  std::vector<float> codewords;
  std::vector<std::uint8_t> codes;
  std::vector<float> tables;
  double error = 0;
  std::vector<float> axes;
  std::vector<float> rotated;
  std::vector<float> optimized_codewords;
  double optimized_error = 0;

  bool operator==(const Results&) const = default;
};

Results results_of(const Context& context, RowsView rows) {
  const ProductQuantizerOptions options = {.parts = 3, .bits = 4, .iterations = 3};
  const ProductQuantizer plain = ProductQuantizer::train(context, rows, options);
  const Rotation rotation = Rotation::pca(context, rows, 5);
  const auto optimized = OptimizedProductQuantizer::train(context, rows, {.quantizer = options, .rounds = 2});
  return {support::codewords_of(plain),
          support::to_vector(plain.encode(context, rows)),
          support::to_vector(plain.tables(context, rows)),
          plain.error(context, rows),
          {rotation.matrix().begin(), rotation.matrix().end()},
          support::to_vector(rotation.apply(context, rows)),
          support::codewords_of(optimized.quantizer),
          optimized.error(context, rows)};
}

// Would catch: arithmetic outside the default environment, in the caller's thread or in workers.
TEST(QuantizeEnvironment, ModesOfTheCallerChangeNothing) {
  for (const Kind kind : {Kind::normal, Kind::denormal, Kind::tiny})
    for (const int threads : {1, 3}) {
      const Rows rows(support::generate(kind, 1500, 8, 80), ElementType::f32);
      const Results expected = results_of(Context::cpu({.threads = threads}), rows);
      EXPECT_GT(expected.error, 0) << "the errors of tiny rows must not be flushed";
      if (support::FlushDenormals::available) {
        const support::FlushDenormals scope;
        EXPECT_TRUE(results_of(Context::cpu({.threads = threads}), rows) == expected) << name(kind);
        EXPECT_TRUE(support::FlushDenormals::is_on());
      }
      for (const int mode : {FE_UPWARD, FE_TOWARDZERO}) {
        const support::RoundingMode scope(mode);
        EXPECT_TRUE(results_of(Context::cpu({.threads = threads}), rows) == expected) << name(kind);
        EXPECT_EQ(std::fegetround(), mode);
      }
    }
}

}  // namespace
}  // namespace nearwise

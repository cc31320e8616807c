// Exact search in a process whose floating-point modes are not the default ones: the same bits.
//
// Would catch: arithmetic, conversions or rounding outside the default environment, in the caller's thread or
// in workers (which inherit the modes of the thread that starts them), and modes that are not given back.
#include <gtest/gtest.h>

#include <cfenv>
#include <cstddef>
#include <optional>
#include <vector>

#include "nearwise/exact.h"
#include "support/float_modes.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::FlushDenormals;
using support::Kind;
using support::Problem;
using support::RoundingMode;
using support::same;

struct Expected {
  Problem problem;
  KnnOptions options;
  oracle::Answer answer;
};

// Inputs that are denormal, results that are (tiny ones squared), and ordinary data for the rounding modes.
std::vector<Expected> expectations() {
  std::vector<Expected> all;
  for (const Metric metric : support::every_metric)
    for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16})
      for (const Kind kind : {Kind::denormal, Kind::tiny, Kind::mixed_ranges, Kind::normal})
        for (const std::size_t queries : support::few_and_many) {
          Problem problem = support::make_problem({.kind = kind,
                                                   .rows = 400,
                                                   .queries = queries,
                                                   .dim = 19,
                                                   .base_type = type,
                                                   .query_type = type,
                                                   .seed = 77});
          oracle::Answer answer = oracle::knn(problem.queries, problem.base, 15, metric);
          all.push_back({std::move(problem), {.metric = metric}, std::move(answer)});
        }
  return all;
}

void expect_all(const std::vector<Expected>& all, const Context& context) {
  for (const auto& [problem, options, answer] : all)
    EXPECT_TRUE(same(answer, knn(context, problem.queries, problem.base, 15, options)))
        << context.isa() << ", " << context.threads() << " threads, " << name(options.metric) << " "
        << name(problem.base.view().type());
}

TEST(KnnEnvironment, DenormalsFlushedToZeroByTheCaller) {
  if (!FlushDenormals::available) GTEST_SKIP() << "no way to flush denormals on this machine";
  const std::vector<Expected> all = expectations();
  for (const std::string& isa : instruction_sets())
    for (const int threads : {1, 3}) {
      const Context made_before = Context::cpu({.threads = threads, .isa = isa});
      const FlushDenormals flush;
      // The mode is really on: half the smallest normal number is zero here.
      volatile float half_smallest = std::numeric_limits<float>::min();
      half_smallest = half_smallest * 0.5F;
      ASSERT_EQ(half_smallest, 0.0F);
      expect_all(all, made_before);
      EXPECT_TRUE(FlushDenormals::is_on()) << "the caller's modes were not given back";
      expect_all(all, Context::cpu({.threads = threads, .isa = isa}));
    }
}

TEST(KnnEnvironment, RoundingModeOfTheCaller) {
  const std::vector<Expected> all = expectations();
  for (const std::string& isa : instruction_sets())
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO})
      for (const int threads : {1, 3}) {
        const RoundingMode rounding(mode);
        expect_all(all, Context::cpu({.threads = threads, .isa = isa}));
        EXPECT_EQ(std::fegetround(), mode) << "the caller's mode was not given back";
      }
}

}  // namespace
}  // namespace nearwise

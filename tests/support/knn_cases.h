// One generated case of exact search: its description, its answer by the oracle, and the comparison with what
// the library returns at every instruction set.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/exact.h"
#include "nearwise/machine.h"
#include "oracle/knn.h"
#include "support/problems.h"

namespace nearwise {

// How GoogleTest shows the parameter of a suite over metrics.
inline void PrintTo(Metric metric, std::ostream* out) { *out << name(metric); }

}  // namespace nearwise

namespace nearwise::support {

inline constexpr std::array every_metric = {Metric::sqeuclidean, Metric::euclidean, Metric::inner_product,
                                            Metric::cosine};
inline constexpr std::array every_type = {ElementType::f32, ElementType::f16, ElementType::bf16,
                                          ElementType::u8, ElementType::i8};

// Queries of a batch: a search may take few and many of them along different ways, and both must be tested.
inline constexpr std::array<std::size_t, 2> few_and_many = {1, 40};

// Names the instances of a suite over metrics.
inline std::string metric_name(const ::testing::TestParamInfo<Metric>& instance) {
  return std::string(name(instance.param));
}

// Ids and the bits of distances, where two answers first differ.
inline ::testing::AssertionResult same(const oracle::Answer& expected, const Neighbors& given) {
  const auto has_shape = [&](const auto& matrix) {
    return matrix.rows() == expected.queries && matrix.cols() == expected.k;
  };
  if (!has_shape(given.ids) || !has_shape(given.distances))
    return ::testing::AssertionFailure() << fmt::format(
               "shape: expected {} x {}, got ids {} x {}, distances {} x {}", expected.queries, expected.k,
               given.ids.rows(), given.ids.cols(), given.distances.rows(), given.distances.cols());
  for (std::size_t query = 0; query < expected.queries; ++query)
    for (std::size_t rank = 0; rank < expected.k; ++rank) {
      const std::size_t index = query * expected.k + rank;
      const Id id = given.ids(query, rank);
      const float distance = given.distances(query, rank);
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(distance);
      const std::uint32_t expected_bits = std::bit_cast<std::uint32_t>(expected.distances[index]);
      if (id != expected.ids[index] || bits != expected_bits)
        return ::testing::AssertionFailure() << fmt::format(
                   "query {} rank {}: expected id {} distance {} ({:#010x}), got id {} distance {} "
                   "({:#010x})",
                   query, rank, expected.ids[index], expected.distances[index], expected_bits, id, distance,
                   bits);
    }
  return ::testing::AssertionSuccess();
}

// The library's own answer as an expectation: for properties that compare two runs.
inline oracle::Answer as_expected(const Neighbors& neighbors) {
  const std::size_t size = neighbors.ids.rows() * neighbors.ids.cols();
  return {neighbors.ids.rows(),
          neighbors.ids.cols(),
          {neighbors.ids.data(), neighbors.ids.data() + size},
          {neighbors.distances.data(), neighbors.distances.data() + size}};
}

// One thread, each instruction set compiled into this build, best first. Made once: a Context owns threads.
inline const std::vector<Context>& every_instruction_set() {
  static const std::vector<Context> contexts = [] {
    std::vector<Context> made;
    for (const std::string& isa : instruction_sets())
      made.push_back(Context::cpu({.threads = 1, .isa = isa}));
    return made;
  }();
  return contexts;
}

struct KnnCase {
  Recipe recipe = {};
  Metric metric = Metric::sqeuclidean;
  std::size_t k = 1;
};

inline std::string describe(const KnnCase& knn_case) {
  const Recipe& recipe = knn_case.recipe;
  return fmt::format("{} {} [{}, {}] {} {} against [{}, {}] {} {}, k {}, seed {}", name(knn_case.metric),
                     name(recipe.kind), recipe.queries, recipe.dim, name(recipe.query_type),
                     name(recipe.query_layout), recipe.rows, recipe.dim, name(recipe.base_type),
                     name(recipe.base_layout), knn_case.k, recipe.seed);
}

inline KnnOptions options_for(const KnnCase& knn_case) {
  const bool is_short = knn_case.k > knn_case.recipe.rows;
  return {.metric = knn_case.metric, .short_rows = is_short ? ShortRows::pad : ShortRows::refuse};
}

// Runs a problem at every instruction set against one answer of the oracle.
inline void expect_oracle_answer(RowsView queries, RowsView base, std::size_t k, const KnnOptions& options) {
  const oracle::Answer expected = oracle::knn(queries, base, k, options.metric);
  for (const Context& context : every_instruction_set())
    EXPECT_TRUE(same(expected, knn(context, queries, base, k, options))) << "at " << context.isa();
}

// Prints the number of cases once, at the end of a program.
class CaseCount : public ::testing::Environment {
 public:
  void add(std::size_t cases) { total_ += cases; }
  void TearDown() override {
    if (total_ > 0) fmt::print("generated cases: {}\n", total_);
  }

 private:
  std::size_t total_ = 0;
};
inline CaseCount& case_count = *[] {
  auto* count = new CaseCount;  // GoogleTest owns it
  ::testing::AddGlobalTestEnvironment(count);
  return count;
}();

// Runs generated cases, counts them, and gives up after a few failures: one fault fails thousands of cases.
class CaseRunner {
 public:
  CaseRunner() = default;
  ~CaseRunner() {
    case_count.add(count_);
    ::testing::Test::RecordProperty("generated_cases", static_cast<int>(count_));
  }
  CaseRunner(const CaseRunner&) = delete;
  CaseRunner& operator=(const CaseRunner&) = delete;

  // False: stop.
  bool run(const KnnCase& knn_case) { return run(knn_case, make_problem(knn_case.recipe)); }

  // The same for a problem made in another way than its recipe says.
  bool run(const KnnCase& knn_case, const Problem& problem) {
    SCOPED_TRACE(describe(knn_case));
    ++count_;
    const int failures_before = failures();
    EXPECT_NO_THROW(expect_oracle_answer(problem.queries, problem.base, knn_case.k, options_for(knn_case)));
    if (failures() > failures_before) ++failed_cases_;
    return failed_cases_ < 5;
  }

 private:
  static int failures() {
    return ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
  }
  std::size_t count_ = 0;
  int failed_cases_ = 0;
};

}  // namespace nearwise::support

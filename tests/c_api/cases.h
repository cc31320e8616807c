// What tests of the C interface have in common.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nearwise/c/nearwise_c.h"
#include "nearwise/context.h"
#include "nearwise/neighbors.h"
#include "support/problems.h"

namespace nearwise::testing_c {

struct Destroy {
  void operator()(nearwise_context* context) const { nearwise_context_destroy(context); }
  void operator()(nearwise_index* index) const { nearwise_index_destroy(index); }
};
using OwnedContext = std::unique_ptr<nearwise_context, Destroy>;
using OwnedIndex = std::unique_ptr<nearwise_index, Destroy>;

inline OwnedContext make_context(std::uint64_t memory_limit = 0) {
  const nearwise_context_options options = {
      .size = sizeof options, .threads = 2, .memory_limit = memory_limit, .seed = 7, .device = nullptr};
  nearwise_context* made = nullptr;
  EXPECT_EQ(nearwise_context_create(&options, &made), NEARWISE_OK) << nearwise_last_error();
  return OwnedContext(made);
}

// The same for the C++ functions.
inline Context same_context() { return Context::cpu({.threads = 2, .seed = 7}); }

inline nearwise_rows c_rows(RowsView rows) {
  return {rows.data(), static_cast<nearwise_element_type>(rows.type()), rows.rows(), rows.dim(),
          rows.stride_bytes()};
}

// Normally distributed vectors and queries.
inline support::Problem problem_of(ElementType type = ElementType::f32, std::size_t rows = 1500,
                                   std::size_t dim = 16, std::size_t queries = 20) {
  return support::make_problem(
      {.rows = rows, .queries = queries, .dim = dim, .base_type = type, .query_type = type, .seed = 3});
}

// What a search writes.
struct Found {
  std::vector<std::int64_t> ids;
  std::vector<float> distances;
  Found(std::size_t queries, std::size_t k) : ids(queries * k, -7), distances(queries * k, -7) {}
};

inline void expect_same(const Neighbors& expected, const Found& found) {
  const std::size_t count = expected.ids.rows() * expected.ids.cols();
  ASSERT_EQ(found.ids.size(), count);
  EXPECT_TRUE(std::equal(found.ids.begin(), found.ids.end(), expected.ids.data()));
  EXPECT_TRUE(std::equal(found.distances.begin(), found.distances.end(), expected.distances.data()));
}

// The message of a call that fails with this status.
inline std::string message_of(nearwise_status expected, nearwise_status status) {
  EXPECT_EQ(status, expected) << nearwise_last_error();
  return nearwise_last_error();
}

}  // namespace nearwise::testing_c

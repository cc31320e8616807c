// The exception type, and the checks that throw it or end the process.
#include "nearwise/error.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string_view>

#include "core/check.h"

namespace nearwise {
namespace {

TEST(Error, KeepsCodeAndMessage) {
  const Error error(ErrorCode::corrupt, "container: section 'ids' is damaged");
  EXPECT_EQ(error.code(), ErrorCode::corrupt);
  EXPECT_STREQ(error.what(), "container: section 'ids' is damaged");
  // Who knows only the standard library catches it too.
  EXPECT_THROW(throw Error(ErrorCode::corrupt, "x"), std::runtime_error);
}

TEST(Error, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  const int codes = static_cast<int>(ErrorCode::internal) + 1;
  for (int code = 0; code < codes; ++code) names.insert(name(static_cast<ErrorCode>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(codes));
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_EQ(name(static_cast<ErrorCode>(codes)), "unknown");
}

TEST(Check, RequireIsSilentWhenItHoldsAndFormatsWhenNot) {
  EXPECT_NO_THROW(require(true, "knn: k {} ", 3));
  try {
    require(false, "knn: k must be at most {}, got {}", 10, 11);
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_STREQ(error.what(), "knn: k must be at most 10, got 11");
  }
}

TEST(Check, FailThrowsTheGivenCode) {
  try {
    fail(ErrorCode::device, "cuda:{}: lost", 1);
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
    EXPECT_STREQ(error.what(), "cuda:1: lost");
  }
}

TEST(CheckDeathTest, AFailedAssertionEndsTheProcessAndNamesItself) {
  const int rows = 3;
  NEARWISE_ASSERT(rows == 3);
  EXPECT_DEATH(NEARWISE_ASSERT(rows == 4),
               "nearwise: internal error: rows == 4 does not hold \\(.*error_test.cpp:");
}

}  // namespace
}  // namespace nearwise

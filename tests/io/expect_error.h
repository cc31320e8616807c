// EXPECT_ERROR(statement, code, part): throws nearwise::Error with this code and `part` in its message.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "nearwise/error.h"

namespace nearwise::testing_io {

inline ::testing::AssertionResult throws_error(const std::function<void()>& call, ErrorCode code,
                                               const std::string& part) {
  try {
    call();
  } catch (const Error& error) {
    if (error.code() != code)
      return ::testing::AssertionFailure()
             << "expected " << name(code) << ", got " << name(error.code()) << ": " << error.what();
    if (std::string(error.what()).find(part) == std::string::npos)
      return ::testing::AssertionFailure() << "expected '" << part << "' in: " << error.what();
    return ::testing::AssertionSuccess();
  } catch (const std::exception& error) {
    return ::testing::AssertionFailure() << "not an Error: " << error.what();
  }
  return ::testing::AssertionFailure() << "nothing was thrown";
}

}  // namespace nearwise::testing_io

#define EXPECT_ERROR(statement, code, part) \
  EXPECT_TRUE(::nearwise::testing_io::throws_error([&] { statement; }, ::nearwise::ErrorCode::code, part))

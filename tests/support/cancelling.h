// A search that is cancelled from within: at a certain report of its own progress, so that no timing decides.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "nearwise/context.h"
#include "nearwise/error.h"

namespace nearwise::support {

// Runs search(context) with a clock under which every unit of work reports, and cancels at report `when` (0
// is the first). Expects Error(cancelled) and all memory given back.
template <typename Search>
void expect_cancelled_at_report(int when, int threads, const std::string& isa, const Search& search) {
  const auto context = std::make_shared<std::optional<Context>>();
  std::atomic<int> reports = 0;
  std::atomic<int> seconds = 0;
  *context = Context::cpu({.threads = threads,
                           .isa = isa,
                           .progress =
                               [&](const Progress&) {
                                 if (reports++ == when) (*context)->cancel();
                               },
                           .clock = [&] { return static_cast<double>(++seconds); }});
  try {
    search(**context);
    ADD_FAILURE() << "the search ended as if it had not been cancelled, after " << reports << " reports";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
  }
  EXPECT_EQ((*context)->memory_used(), 0U);
}

// The error that a call throws, if any.
template <typename Call>
std::optional<Error> error_from(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace nearwise::support

// The least memory limit under which a search runs, as the library itself names it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/error.h"
#include "nearwise/exact.h"

namespace nearwise::support {

// By hand: <regex> takes seconds to compile, and sanitizers double that.
inline std::vector<std::uint64_t> numbers_in(const std::string& message) {
  constexpr const char* digits = "0123456789";
  std::vector<std::uint64_t> numbers;
  for (std::size_t begin = message.find_first_of(digits); begin != std::string::npos;) {
    const std::size_t end = std::min(message.find_first_not_of(digits, begin), message.size());
    numbers.push_back(std::stoull(message.substr(begin, end - begin)));
    begin = message.find_first_of(digits, end);
  }
  return numbers;
}

// What the library itself says is needed: the largest number in the refusal of a limit of one byte.
inline std::uint64_t min_memory(RowsView queries, RowsView base, std::size_t k, Metric metric, int threads,
                                const std::string& isa) {
  const Context context = Context::cpu({.threads = threads, .memory_limit = 1, .isa = isa});
  try {
    knn(context, queries, base, k, {.metric = metric});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
    EXPECT_EQ(context.memory_used(), 0U);
    const std::vector<std::uint64_t> numbers = numbers_in(error.what());
    if (!numbers.empty()) return *std::max_element(numbers.begin(), numbers.end());
    ADD_FAILURE() << "the message names no limit that would do: " << error.what();
    return 0;
  }
  ADD_FAILURE() << "one byte was enough";
  return 0;
}

}  // namespace nearwise::support

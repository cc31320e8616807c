// The least memory limit under which a search runs, as the library itself names it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <regex>
#include <string>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/error.h"
#include "nearwise/exact.h"

namespace nearwise::support {

inline std::vector<std::uint64_t> numbers_in(const std::string& message) {
  static const std::regex digits("[0-9]+");
  std::vector<std::uint64_t> numbers;
  for (auto match = std::sregex_iterator(message.begin(), message.end(), digits);
       match != std::sregex_iterator(); ++match)
    numbers.push_back(std::stoull(match->str()));
  return numbers;
}

// What the library itself says is needed: the largest number in the refusal of a limit of one byte.
inline std::uint64_t least_memory(RowsView queries, RowsView base, std::size_t k, Metric metric, int threads,
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

// The least memory limit under which a search runs, as the library itself names it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/error.h"
#include "nearwise/exact.h"

namespace nearwise::support {

// The sizes in a message, in bytes. By hand: <regex> takes seconds to compile, and sanitizers double that.
inline std::vector<std::uint64_t> sizes_in(const std::string& message) {
  constexpr const char* digits = "0123456789";
  std::vector<std::uint64_t> sizes;
  for (std::size_t begin = message.find_first_of(digits); begin != std::string::npos;) {
    std::size_t length = 0;
    const double number = std::stod(message.substr(begin), &length);
    const std::string rest = message.substr(begin + length);
    double unit = rest.starts_with(" B") ? 1 : 0;
    for (std::size_t power = 0; power < 4; ++power)
      if (rest.starts_with(std::string(" ") + "KMGT"[power] + "iB"))
        unit = std::pow(1024.0, static_cast<double>(power + 1));
    if (unit != 0) sizes.push_back(static_cast<std::uint64_t>(number * unit));
    begin = message.find_first_of(digits, begin + length);
  }
  return sizes;
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
    const std::vector<std::uint64_t> sizes = sizes_in(error.what());
    if (!sizes.empty()) return *std::max_element(sizes.begin(), sizes.end());
    ADD_FAILURE() << "the message names no limit that would do: " << error.what();
    return 0;
  }
  ADD_FAILURE() << "one byte was enough";
  return 0;
}

}  // namespace nearwise::support

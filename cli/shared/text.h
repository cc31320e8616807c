// Numbers as people write and read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nearwise::cli {

// The parsers are strict, unlike the argument parser's, which takes "-1" for 2^64 - 1 and "010" for eight.
// They throw Error(invalid_argument) whose text is the expectation: "a whole number of at least 1".

// "2GiB", "1.5 GiB" (powers of 1024), "500MB", "500M" (powers of 1000), "1073741824", "64B"; upper or lower
// case.
std::uint64_t parse_bytes(std::string_view text);
std::size_t parse_count(std::string_view text, std::size_t minimum);
// A number that is not negative: "0.001", "1e-4".
double parse_number(std::string_view text);
// Above 0 and at most 1.
double parse_share(std::string_view text);
// None if the text is no integer.
std::optional<std::int64_t> parse_integer(std::string_view text);

std::string format_bytes(std::uint64_t bytes);      // "1.5 GiB"
std::string format_count(double count);             // "12.3 k"
std::string format_duration(double seconds);        // "0:07", "1:02:03"
std::string format_utc(std::int64_t unix_seconds);  // "2026-11-15T03:12:34Z"

// Of ASCII letters: "FBIN" becomes "fbin".
std::string lower_case(std::string_view text);

// An argument quoted for a shell.
std::string quote(std::string_view argument);

}  // namespace nearwise::cli

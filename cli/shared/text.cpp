#include "cli/shared/text.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "nearwise/error.h"

namespace nearwise::cli {
namespace {

// The whole text as a number.
template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  return end.ec == std::errc() && end.ptr == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// The value divided by `step` until it is smaller than that, and how often, at most `most` times.
std::pair<double, std::size_t> scaled(double value, double step, std::size_t most) {
  std::size_t divisions = 0;
  for (; value >= step && divisions < most; ++divisions) value /= step;
  return {value, divisions};
}

std::optional<std::uint64_t> unit_bytes(std::string_view unit) {
  if (unit.empty() || unit == "b") return 1;
  constexpr std::string_view prefixes = "kmgtpe";
  const std::size_t power = prefixes.find(unit.front());
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = unit.substr(1);
  std::uint64_t step = 0;
  if (rest.empty() || rest == "b") step = 1000;
  if (rest == "i" || rest == "ib") step = 1024;
  if (step == 0) return std::nullopt;
  std::uint64_t bytes = step;
  for (std::size_t i = 0; i < power; ++i) bytes *= step;
  return bytes;
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text) {
  const auto refuse = [] {
    return Error(ErrorCode::invalid_argument, "a size such as 2GiB, 500MB or 1073741824");
  };
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text.remove_suffix(text.size() - std::min(text.find_last_not_of(' ') + 1, text.size()));
  const std::size_t number_end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = text.substr(0, number_end);
  std::string_view unit = text.substr(number_end);
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  const std::optional<std::uint64_t> scale = unit_bytes(lower_case(unit));
  if (!scale) throw refuse();

  const std::size_t point = std::min(number.find('.'), number.size());
  const std::string_view whole = number.substr(0, point);
  const std::string_view fraction = point == number.size() ? "" : number.substr(point + 1);
  if (whole.empty() && fraction.empty()) throw refuse();
  const auto whole_units = whole.empty() ? std::optional<std::uint64_t>(0) : number_of<std::uint64_t>(whole);
  if (!whole_units || *whole_units > std::numeric_limits<std::uint64_t>::max() / *scale) throw refuse();

  // Exact, as in Python: 1.001kB are 1001 bytes. From the last digit, every division rounds down.
  std::uint64_t part = 0;
  for (std::size_t place = fraction.size(); place-- > 0;) {
    if (fraction[place] == '.') throw refuse();
    part = (static_cast<std::uint64_t>(fraction[place] - '0') * *scale + part) / 10;
  }
  const std::uint64_t bytes = *whole_units * *scale;
  if (part > std::numeric_limits<std::uint64_t>::max() - bytes) throw refuse();
  return bytes + part;
}

std::size_t parse_count(std::string_view text, std::size_t minimum) {
  const auto count = number_of<std::size_t>(text);
  if (!count || *count < minimum)
    throw Error(ErrorCode::invalid_argument, fmt::format("a whole number of at least {}", minimum));
  return *count;
}

std::optional<std::int64_t> parse_integer(std::string_view text) { return number_of<std::int64_t>(text); }

double parse_number(std::string_view text) {
  const auto number = number_of<double>(text);
  if (!number || !std::isfinite(*number) || *number < 0)
    throw Error(ErrorCode::invalid_argument, "a number of at least 0, such as 0.001");
  return *number;
}

double parse_share(std::string_view text) {
  const double share = parse_number(text);
  if (share == 0 || share > 1) throw Error(ErrorCode::invalid_argument, "above 0 and at most 1");
  return share;
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const auto [value, unit] = scaled(static_cast<double>(bytes) / 1024, 1024, 5);
  return fmt::format("{:.1f} {}iB", value, "KMGTPE"[unit]);
}

std::string format_count(double count) {
  constexpr std::array units = {"", " k", " M", " G", " T"};
  const auto [value, unit] = scaled(count, 1000, units.size() - 1);
  return fmt::format("{:.3g}{}", value, units[unit]);
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::lround(std::clamp(seconds, 0.0, 1e9)));
  const std::uint64_t hours = whole / 3600;
  const std::uint64_t minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string format_utc(std::int64_t unix_seconds) {
  const auto seconds = static_cast<time_t>(unix_seconds);
  struct tm parts = {};
  if (gmtime_r(&seconds, &parts) == nullptr)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} seconds since 1970 are out of range", unix_seconds));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string lower_case(std::string_view text) {
  std::string small(text);
  for (char& letter : small)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return small;
}

std::string quote(std::string_view argument) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%";
  if (!argument.empty() && argument.find_first_not_of(plain) == std::string_view::npos)
    return std::string(argument);
  std::string quoted = "'";
  for (const char letter : argument) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

}  // namespace nearwise::cli

// Rows of inverted lists: where a numbered row is, and sums over its code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/ops.h"

namespace nearwise::cpu {

// Numbers the rows of all lists in a row: those of list 0 first.
class ListNumbers {
 public:
  // Looking up many rows is worth a table of where to begin; for a few of them, making it would take longer.
  enum class Lookups : std::uint8_t { few, many };
  ListNumbers(std::span<const ListView> lists, Lookups lookups);
  static std::uint64_t bytes(std::size_t lists, std::size_t rows);

  struct Place {
    std::size_t list;
    std::size_t row;
  };
  Place find(std::uint32_t number) const;
  std::size_t rows() const { return firsts_.back(); }
  std::uint32_t first(std::size_t list) const { return static_cast<std::uint32_t>(firsts_[list]); }

 private:
  static constexpr unsigned stretch_bits = 8;
  std::vector<std::size_t> firsts_;       // [lists + 1]
  std::vector<std::uint32_t> stretches_;  // the list of every 256th row, where find() begins; empty: few
};

// The square of a vector's length, added up in chains that do not wait for each other.
double squares_of(std::span<const double> vector);

// start and the entries that a code names in tables [parts, 2^bits], added up in four chains that do not wait for each other.
template <unsigned bits>
float sum_entries(const float* tables, std::size_t parts, const std::byte* code, float start) {
  const auto entry = [&](std::size_t part) { return tables[(part << bits) + codeword_of<bits>(code, part)]; };
  float sums[4] = {start, 0, 0, 0};
  std::size_t part = 0;
  for (; part + 4 <= parts; part += 4)
    for (std::size_t chain = 0; chain < 4; ++chain) sums[chain] += entry(part + chain);
  for (; part < parts; ++part) sums[0] += entry(part);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace nearwise::cpu

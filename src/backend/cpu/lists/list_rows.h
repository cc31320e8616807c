// Rows of inverted lists: consecutive numbers for the rows of all lists, and sums over a code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/ops.h"

namespace nearwise::cpu {

// Numbers the rows of all lists consecutively, list 0 first.
class ListNumbers {
 public:
  // many: builds an index of starting points, which costs more than a few lookups.
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
  std::vector<std::uint32_t> stretches_;  // list of every 256th row, where find() starts; empty: few
};

// Squared norm, summed in independent chains to hide latency.
double squares_of(std::span<const double> vector);

// start plus the code's entries in tables [parts, 2^bits], summed in four independent chains to hide latency.
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

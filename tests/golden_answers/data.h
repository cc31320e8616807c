// The data of golden answers.
//
// Sums of uniform numbers, without a function of the mathematical library: data must stay the same where the
// random normal numbers of the library change.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/math/random.h"
#include "nearwise/types.h"
#include "support/rows.h"

namespace nearwise::golden {

inline constexpr ElementType every_type[] = {ElementType::f32, ElementType::f16, ElementType::bf16,
                                             ElementType::u8, ElementType::i8};
inline constexpr Metric every_metric[] = {Metric::sqeuclidean, Metric::euclidean, Metric::inner_product,
                                          Metric::cosine};

// Nine clusters; every eighth row repeats an earlier one, and row 5 is zero.
inline support::Values make_values(std::size_t rows, std::size_t dim, std::uint64_t seed) {
  constexpr std::size_t clusters = 9;
  const Random element(seed, 1);
  const Random centre(seed, 2);
  const Random copied(seed, 3);
  support::Values values(rows, dim);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < dim; ++i) {
      const std::uint64_t index = (row * dim + i) * 3;
      const double noise = element.uniform(index) + element.uniform(index + 1) + element.uniform(index + 2);
      values(row, i) = 3 * centre.uniform(row % clusters * dim + i) + noise - 3;
      if (row % 8 == 7) values(row, i) = values(copied.below(row, row), i);
      if (row == 5) values(row, i) = 0;
    }
  return values;
}

inline support::Rows make_rows(std::size_t rows, std::size_t dim, std::uint64_t seed,
                               ElementType type = ElementType::f32,
                               support::Layout layout = support::Layout::dense) {
  return {make_values(rows, dim, seed), type, layout};
}

// Rows of f32 that hold integers from 0 to 255.
inline support::Rows make_integers(std::size_t rows, std::size_t dim, std::uint64_t seed) {
  support::Values values = make_values(rows, dim, seed);
  for (std::size_t row = 0; row < rows; ++row)
    for (double& value : values.row(row)) value = std::nearbyint(std::fabs(value) * 30);
  return {values, ElementType::f32};
}

// "knn.f32.cosine"
inline std::string name_of(const std::string& operation, ElementType type, Metric metric) {
  return operation + "." + std::string(name(type)) + "." + std::string(name(metric));
}

}  // namespace nearwise::golden

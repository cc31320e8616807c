// Generators of search problems: ordinary data, and data that breaks careless arithmetic.
//
// A problem is a pure function of its Recipe: the seed in a failure message is all that is needed to repeat
// it.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/math/random.h"
#include "support/rows.h"

namespace nearwise::support {

enum class Kind : std::uint8_t {
  normal,
  uniform,            // in [0, 1)
  integers,           // in [-3, 3]: many ties
  near_duplicates,    // clusters of 300 copies with spread 1e-3
  nearer_duplicates,  // ... and 1e-7: the last bit of f32
  exact_duplicates,   // a fifth of the rows repeat an earlier one
  identical,          // every row the same
  offset_1e4,         // standard deviation 1, far from the origin
  offset_1e6,
  denormal,      // around 1e-40 (for f16 around 1e-6)
  tiny,          // around 1e-22: squares and products are denormal in f32
  overflowing,   // rows scaled by 1e17 to 1e20: squares begin to exceed f32
  huge,          // around 1e30: squares exceed f32
  largest,       // up to 3e38, a quarter zeros: differences exceed f32
  mixed_ranges,  // rows scaled by 1e-20 to 1e20
  zero_rows,     // three in ten rows are zero
  one_hot,       // one non-zero of a few values
  sparse,        // one in ten non-zero
  constant_columns,
  // 1 and 2^30 of either sign: products cancel, and what remains depends on the order of summation
  cancelling,
};

inline constexpr std::array every_kind = {Kind::normal,
                                          Kind::uniform,
                                          Kind::integers,
                                          Kind::near_duplicates,
                                          Kind::nearer_duplicates,
                                          Kind::exact_duplicates,
                                          Kind::identical,
                                          Kind::offset_1e4,
                                          Kind::offset_1e6,
                                          Kind::denormal,
                                          Kind::tiny,
                                          Kind::overflowing,
                                          Kind::huge,
                                          Kind::largest,
                                          Kind::mixed_ranges,
                                          Kind::zero_rows,
                                          Kind::one_hot,
                                          Kind::sparse,
                                          Kind::constant_columns,
                                          Kind::cancelling};

inline std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::normal: return "normal";
    case Kind::uniform: return "uniform";
    case Kind::integers: return "integers";
    case Kind::near_duplicates: return "near_duplicates";
    case Kind::nearer_duplicates: return "nearer_duplicates";
    case Kind::exact_duplicates: return "exact_duplicates";
    case Kind::identical: return "identical";
    case Kind::offset_1e4: return "offset_1e4";
    case Kind::offset_1e6: return "offset_1e6";
    case Kind::denormal: return "denormal";
    case Kind::tiny: return "tiny";
    case Kind::overflowing: return "overflowing";
    case Kind::huge: return "huge";
    case Kind::largest: return "largest";
    case Kind::mixed_ranges: return "mixed_ranges";
    case Kind::zero_rows: return "zero_rows";
    case Kind::one_hot: return "one_hot";
    case Kind::sparse: return "sparse";
    case Kind::constant_columns: return "constant_columns";
    case Kind::cancelling: return "cancelling";
  }
  return "unknown";
}

// Random numbers of one use; each purpose has a stream of its own.
enum class Purpose : std::uint64_t { elements, centres, rows, columns, queries, shapes };
inline Random random_for(std::uint64_t seed, Purpose purpose) {
  return Random(seed, static_cast<std::uint64_t>(purpose));
}

// denormal_scale: what counts as denormal in the narrowest element type of the problem.
inline Values generate(Kind kind, std::size_t rows, std::size_t dim, std::uint64_t seed,
                       double denormal_scale = 1e-40) {
  const Random element = random_for(seed, Purpose::elements);
  const Random centre = random_for(seed, Purpose::centres);
  const Random by_row = random_for(seed, Purpose::rows);
  const Random by_column = random_for(seed, Purpose::columns);
  const std::size_t clusters = rows / 300 + 1;
  Values values(rows, dim);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t original = kind == Kind::exact_duplicates && row > 0 && by_row.uniform(2 * row) < 0.2
                                     ? static_cast<std::size_t>(by_row.below(2 * row + 1, row))
                                     : row;
    for (std::size_t i = 0; i < dim; ++i) {
      const std::uint64_t index = row * dim + i;
      const auto normal = [&] { return element.normal(index); };
      const auto uniform = [&] { return element.uniform(index); };
      const auto cluster_centre = [&] { return centre.normal(row % clusters * dim + i); };
      double& value = values(row, i);
      switch (kind) {
        case Kind::normal: value = normal(); break;
        case Kind::uniform: value = uniform(); break;
        case Kind::integers: value = std::floor(uniform() * 7.0) - 3.0; break;
        case Kind::near_duplicates: value = cluster_centre() + 1e-3 * normal(); break;
        case Kind::nearer_duplicates: value = cluster_centre() * (1.0 + 1e-7 * normal()); break;
        case Kind::exact_duplicates: value = original == row ? normal() : values(original, i); break;
        case Kind::identical: value = by_column.normal(i); break;
        case Kind::offset_1e4: value = 1e4 + normal(); break;
        case Kind::offset_1e6: value = 1e6 + normal(); break;
        case Kind::denormal: value = denormal_scale * normal(); break;
        case Kind::tiny: value = 1e-22 * normal(); break;
        case Kind::overflowing: value = std::pow(10.0, 17.0 + 3.0 * by_row.uniform(row)) * normal(); break;
        case Kind::huge: value = 1e30 * normal(); break;
        case Kind::largest: value = uniform() < 0.25 ? 0.0 : std::copysign(3e38 * uniform(), normal()); break;
        case Kind::mixed_ranges: value = std::pow(10.0, 40.0 * by_row.uniform(row) - 20.0) * normal(); break;
        case Kind::zero_rows: value = by_row.uniform(row) < 0.3 ? 0.0 : normal(); break;
        case Kind::one_hot:
          value =
              by_row.below(2 * row, dim) == i ? static_cast<double>(1 + by_row.below(2 * row + 1, 3)) : 0.0;
          break;
        case Kind::sparse: value = uniform() < 0.1 ? normal() : 0.0; break;
        case Kind::constant_columns: value = i % 2 == 0 ? 7.25 : normal(); break;
        case Kind::cancelling: value = std::copysign(uniform() < 0.3 ? 0x1p30 : 1.0, normal()); break;
      }
    }
  }
  return values;
}

struct Recipe {
  Kind kind = Kind::normal;
  std::size_t rows = 0;
  std::size_t queries = 0;
  std::size_t dim = 0;
  ElementType base_type = ElementType::f32;
  ElementType query_type = ElementType::f32;
  Layout base_layout = Layout::dense;
  Layout query_layout = Layout::dense;
  std::uint64_t seed = 0;
};

struct Problem {
  Rows queries;
  Rows base;
};

inline Values slice(const Values& values, std::size_t first, std::size_t count) {
  Values part(count, values.dim());
  for (std::size_t row = 0; row < count; ++row)
    for (std::size_t i = 0; i < values.dim(); ++i) part(row, i) = values(first + row, i);
  return part;
}

// The first row of `values`, `count` times.
inline Values repeated(const Values& values, std::size_t count) {
  Values copies(count, values.dim());
  for (std::size_t row = 0; row < count; ++row)
    for (std::size_t i = 0; i < values.dim(); ++i) copies(row, i) = values(0, i);
  return copies;
}

// Queries come from the distribution of the base; every fourth is a copy of a base row, and where all rows
// are identical every other one is not.
inline Problem make_problem(const Recipe& recipe) {
  const bool has_f16 = recipe.base_type == ElementType::f16 || recipe.query_type == ElementType::f16;
  const Values all =
      generate(recipe.kind, recipe.rows + recipe.queries, recipe.dim, recipe.seed, has_f16 ? 1e-6 : 1e-40);
  Values queries = slice(all, recipe.rows, recipe.queries);
  const Random random = random_for(recipe.seed, Purpose::queries);
  for (std::size_t query = 0; query < recipe.queries; ++query) {
    const bool copy = query % 4 == 3 && recipe.rows > 0;
    const bool differ = recipe.kind == Kind::identical && query % 2 == 1;
    const std::size_t original = copy ? static_cast<std::size_t>(random.below(2 * query, recipe.rows)) : 0;
    for (std::size_t i = 0; i < recipe.dim; ++i) {
      if (differ)
        queries(query, i) = random_for(recipe.seed, Purpose::elements).normal(query * recipe.dim + i);
      else if (copy)
        queries(query, i) = all(original, i);
    }
  }
  return {Rows(queries, recipe.query_type, recipe.query_layout),
          Rows(slice(all, 0, recipe.rows), recipe.base_type, recipe.base_layout)};
}

}  // namespace nearwise::support

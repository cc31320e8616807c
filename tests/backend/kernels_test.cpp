// The kernels of every compiled instruction set against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "backend/cpu/kernels/kernels.h"
#include "core/distance.h"
#include "core/random.h"

namespace nearwise::cpu {
namespace {

std::vector<float> random_floats(std::uint64_t seed, std::size_t count) {
  const Random random(seed);
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(random.normal(i));
  return out;
}

class KernelsTest : public testing::TestWithParam<int> {
 protected:
  InstructionSet set() const { return available_instruction_sets()[static_cast<std::size_t>(GetParam())]; }
};

// Catches a lost tail, a fused multiply-add, another order of lanes.
TEST_P(KernelsTest, RowDistanceIsTheDefinitionBitForBit) {
  for (const std::size_t dim : {1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100}) {
    const std::vector<float> base = random_floats(dim, 5 * dim);
    const std::vector<float> query_float = random_floats(dim + 1000, dim);
    const std::vector<double> query(query_float.begin(), query_float.end());
    const std::uint32_t rows[] = {4, 0, 2};
    double sums[3];
    double norms[3];
    row_distance_kernels(set()).product_and_norm[static_cast<std::size_t>(ElementType::f32)](
        {.query = query.data(),
         .base = reinterpret_cast<const std::byte*>(base.data()),
         .stride_bytes = dim * sizeof(float),
         .dim = dim,
         .rows = rows,
         .count = 3,
         .sums = sums,
         .norms = norms});
    for (int r = 0; r < 3; ++r) {
      double product[distance_lanes] = {};
      double norm[distance_lanes] = {};
      for (std::size_t i = 0; i < dim; ++i) {
        const double y = base[rows[r] * dim + i];
        product[i % distance_lanes] += query[i] * y;
        norm[i % distance_lanes] += y * y;
      }
      EXPECT_EQ(sums[r], sum_of_lanes(product)) << "dim " << dim;
      EXPECT_EQ(norms[r], sum_of_lanes(norm)) << "dim " << dim;
    }
  }
}

// Catches wrong transposition, a forgotten centre, and rows left over from an earlier panel.
TEST_P(KernelsTest, PackRowsShiftsAndTransposes) {
  const std::size_t width = 23;  // not a multiple of a group
  for (const std::size_t dim : {1, 5, 16, 19, 40}) {
    const std::vector<float> rows = random_floats(1, 4 * dim);
    const std::vector<float> centre = random_floats(2, dim);
    std::vector<float> panel(width * dim, 99);
    std::vector<float> scratch(pack_group * dim);
    double norms[width];
    const PackArgs args = {.rows = reinterpret_cast<const std::byte*>(rows.data()),
                           .stride_bytes = dim * sizeof(float),
                           .count = 4,
                           .dim = dim,
                           .width = width,
                           .centre = centre.data(),
                           .normalise = false,
                           .panel = panel.data(),
                           .norms = norms,
                           .scratch = scratch.data()};
    const auto pack = pack_rows_kernels(set()).pack[static_cast<std::size_t>(ElementType::f32)];
    EXPECT_EQ(pack(args), 4U);
    for (std::size_t r = 0; r < width; ++r) {
      double squares = 0;
      for (std::size_t i = 0; i < dim; ++i) {
        const float expected = r < 4 ? rows[r * dim + i] - centre[i] : 0;
        EXPECT_EQ(panel[i * width + r], expected);
        squares += static_cast<double>(expected) * expected;
      }
      if (r < 4) {
        EXPECT_NEAR(norms[r], std::sqrt(squares), 1e-12 * std::sqrt(squares));
      }
    }
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> damaged = rows;
      damaged[2 * dim + dim - 1] = bad;
      PackArgs damaged_args = args;
      damaged_args.rows = reinterpret_cast<const std::byte*>(damaged.data());
      EXPECT_EQ(pack(damaged_args), 2U);
    }
  }
}

struct Owner {
  std::vector<std::set<std::uint32_t>> found;
  CandidateLists lists;

  // Empties the list, so that every passing row is seen once.
  static void make_room(void* self, std::size_t query) {
    auto& owner = *static_cast<Owner*>(self);
    for (std::uint32_t i = 0; i < owner.lists.counts[query]; ++i)
      owner.found[query].insert(owner.lists.rows[query * owner.lists.stride + i]);
    owner.lists.counts[query] = 0;
  }
};

// Exactly the rows whose score passes the cutoff are reported, whatever the tile they lie in. Integer values make the
// scores exact. Catches wrong row numbers, lanes dropped by compression, lists overrun.
TEST_P(KernelsTest, ScanPanelsReportsWhatPassesTheCutoff) {
  const ScanPanelsKernels& kernels = scan_panels_kernels(set());
  const std::size_t dim = 5;
  const std::size_t base_panels = 3;
  const std::size_t query_panels = 2;
  const std::size_t rows = base_panels * kernels.base_width;
  const std::size_t queries = query_panels * kernels.query_width;
  const Random random(3);
  std::vector<float> base(rows * dim);
  std::vector<float> query(queries * dim);
  std::vector<float> biases(rows);
  for (std::size_t i = 0; i < base.size(); ++i) base[i] = static_cast<float>(random.below(i, 9)) - 4;
  for (std::size_t i = 0; i < query.size(); ++i)
    query[i] = static_cast<float>(random.below(i + 100'000, 9)) - 4;
  for (std::size_t i = 0; i < rows; ++i) biases[i] = static_cast<float>(random.below(i + 200'000, 40));
  const auto element = [&](const std::vector<float>& panels, std::size_t width, std::size_t r,
                           std::size_t i) { return panels[(r / width * dim + i) * width + r % width]; };
  const std::size_t capacity = 2 * kernels.base_width;
  const std::size_t stride = capacity + 16;
  std::vector<float> scores(queries * stride);
  std::vector<std::uint32_t> list_rows(queries * stride);
  std::vector<std::uint32_t> counts(queries, 0);
  std::vector<float> cutoffs(queries);
  for (std::size_t q = 0; q < queries; ++q) cutoffs[q] = static_cast<float>(q) * 4 - 10;
  Owner owner = {std::vector<std::set<std::uint32_t>>(queries),
                 {scores.data(), list_rows.data(), counts.data(), cutoffs.data(), stride, capacity}};
  kernels.scan({.query_panels = query.data(),
                .query_panel_count = query_panels,
                .first_query = 0,
                .base_panels = base.data(),
                .biases = biases.data(),
                .base_panel_count = base_panels,
                .first_row = 1000,
                .dim = dim,
                .lists = owner.lists,
                .make_room = Owner::make_room,
                .owner = &owner});
  for (std::size_t q = 0; q < queries; ++q) {
    Owner::make_room(&owner, q);
    std::set<std::uint32_t> expected;
    for (std::size_t r = 0; r < rows; ++r) {
      float score = biases[r];
      for (std::size_t i = 0; i < dim; ++i)
        score -= element(query, kernels.query_width, q, i) * element(base, kernels.base_width, r, i);
      if (score <= cutoffs[q]) expected.insert(static_cast<std::uint32_t>(1000 + r));
    }
    EXPECT_EQ(owner.found[q], expected) << "query " << q;
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, KernelsTest,
                         testing::Range(0, static_cast<int>(available_instruction_sets().size())),
                         [](const auto& test) {
                           return std::string(
                               name(available_instruction_sets()[static_cast<std::size_t>(test.param)]));
                         });

}  // namespace
}  // namespace nearwise::cpu

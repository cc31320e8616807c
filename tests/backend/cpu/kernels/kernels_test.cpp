// Kernels of every compiled instruction set against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/rows/choose_scan.h"
#include "core/distance.h"
#include "core/math/random.h"
#include "support/scan_panels.h"

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

// Would catch: a lost tail, a fused multiply-add, another order of lanes, mixed-up rows of a group, skipped
// rows after the last whole group.
TEST_P(KernelsTest, RowDistanceIsTheDefinitionBitForBit) {
  for (const std::size_t dim : {1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100}) {
    const std::vector<float> base = random_floats(dim, 5 * dim);
    const std::vector<float> query_float = random_floats(dim + 1000, dim);
    const std::vector<double> query(query_float.begin(), query_float.end());
    const std::uint32_t rows[] = {4, 0, 2, 1, 3, 0, 4};
    double sums[7];
    double norms[7];
    row_distance_kernels(set()).product_and_norm[static_cast<std::size_t>(ElementType::f32)](
        {.query = query.data(),
         .base = reinterpret_cast<const std::byte*>(base.data()),
         .stride_bytes = dim * sizeof(float),
         .dim = dim,
         .rows = rows,
         .count = 7,
         .sums = sums,
         .norms = norms});
    for (int r = 0; r < 7; ++r) {
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

// Would catch: wrong transposition, an ignored centre, stale rows of an earlier panel.
TEST_P(KernelsTest, PackRowsShiftsAndTransposes) {
  const std::size_t width = 23;  // not a multiple of a group
  for (const std::size_t dim : {1, 5, 16, 19, 40}) {
    const std::vector<float> rows = random_floats(1, 4 * dim);
    const std::vector<float> centre = random_floats(2, dim);
    std::vector<float> panel(width * dim, 99);
    std::vector<std::byte> scratch(pack_scratch_bytes(dim, dim * sizeof(float)));
    PackedRow packed[width];
    const PackArgs args = {.rows = reinterpret_cast<const std::byte*>(rows.data()),
                           .stride_bytes = dim * sizeof(float),
                           .count = 4,
                           .dim = dim,
                           .width = width,
                           .row_bytes = dim * sizeof(float),
                           .centre = centre.data(),
                           .normalise = false,
                           .panel = reinterpret_cast<std::byte*>(panel.data()),
                           .packed = packed,
                           .scratch = scratch.data()};
    const auto pack = pack_function(set(), Encoding::f32, ElementType::f32);
    EXPECT_EQ(pack(args), 4U);
    for (std::size_t r = 0; r < width; ++r) {
      double squares = 0;
      for (std::size_t i = 0; i < dim; ++i) {
        const float expected = r < 4 ? rows[r * dim + i] - centre[i] : 0;
        EXPECT_EQ(panel[i * width + r], expected);
        squares += static_cast<double>(expected) * expected;
      }
      if (r < 4) {
        EXPECT_NEAR(packed[r].norm, std::sqrt(squares), 1e-12 * std::sqrt(squares));
        EXPECT_EQ(packed[r].residual, 0);
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

// Packs the nearest bf16 of each element, and the residual bounds the rounding error: ties to even, denormal
// results to zero, including the tail.
TEST_P(KernelsTest, PackRowsRoundsToBf16AndMeasuresTheLoss) {
  const std::size_t dim = 37;
  std::vector<float> row = random_floats(5, dim);
  row[0] = 1 + 0x1p-8F;        // tie: down to the even bf16
  row[1] = 1 + 3 * 0x1p-8F;    // tie: up to the even bf16
  row[2] = 0x1p-127F;          // a denormal
  row[3] = -0x1.fffffep-127F;  // rounds up to the smallest normal number
  row[36] = 3;
  std::vector<std::uint16_t> panel(dim + 1, 99);
  const std::size_t row_bytes = (dim + 1) * sizeof(std::uint16_t);
  std::vector<std::byte> scratch(pack_scratch_bytes(dim, row_bytes));
  PackedRow packed;
  EXPECT_EQ(pack_function(set(), Encoding::bf16,
                          ElementType::f32)({.rows = reinterpret_cast<const std::byte*>(row.data()),
                                             .stride_bytes = dim * sizeof(float),
                                             .count = 1,
                                             .dim = dim,
                                             .width = 1,
                                             .row_bytes = row_bytes,
                                             .precise = true,
                                             .panel = reinterpret_cast<std::byte*>(panel.data()),
                                             .packed = &packed,
                                             .scratch = scratch.data()}),
            1U);
  EXPECT_EQ(panel[0], 0x3F80);
  EXPECT_EQ(panel[1], 0x3F82);
  EXPECT_EQ(panel[2], 0);
  EXPECT_EQ(panel[3], 0x8080);
  EXPECT_EQ(panel[36], 0x4040);
  EXPECT_EQ(panel[37], 0);
  double squares = 0;
  double lost = 0;
  for (std::size_t i = 0; i < dim; ++i) {
    const double y = std::bit_cast<float>(static_cast<std::uint32_t>(panel[i]) << 16);
    EXPECT_LE(std::abs(y - row[i]), std::max(std::abs(y) * 0x1p-8, 0x1p-126)) << i;
    squares += y * y;
    lost += (y - row[i]) * (y - row[i]);
  }
  EXPECT_NEAR(packed.norm, std::sqrt(squares), 1e-12 * std::sqrt(squares));
  EXPECT_GE(packed.residual, std::sqrt(lost));
  EXPECT_LE(packed.residual, std::sqrt(lost) * (1 + 1e-5));
}

// Every scan reports exactly the rows whose score passes the cutoff, once each. Integer values make the
// scores exact in every encoding. Would catch: wrong row numbers, lanes lost in compression, overrun lists,
// wrong layouts, signs or biases of integer products, reported padding.
TEST_P(KernelsTest, ScansReportWhatPassesTheCutoff) {
  for (const ElementType type : {ElementType::f32, ElementType::u8, ElementType::i8}) {
    for (const std::size_t dim : {1, 5, 31, 32, 33, 64, 100, 128, 300, 520}) {
      const ScanKernel kernel = choose_scan(set(), Metric::sqeuclidean, type, type, dim);
      const std::size_t rows = 2 * kernel.base_width + 5;
      const std::size_t queries = kernel.query_width + 3;
      const Random random(3 + dim);
      const int low = type == ElementType::u8 ? 0 : -128;
      std::vector<int> base(rows * dim);
      std::vector<int> query(queries * dim);
      for (std::size_t i = 0; i < base.size(); ++i) base[i] = low + static_cast<int>(random.below(i, 256));
      for (std::size_t i = 0; i < query.size(); ++i)
        query[i] = low + static_cast<int>(random.below(i + 1'000'000, 256));
      const Panels query_panels = pack_panels(set(), kernel, true, encode(type, query), type, queries, dim);
      const Panels base_panels = pack_panels(set(), kernel, false, encode(type, base), type, rows, dim);
      const bool flipped = kernel.query_encoding == Encoding::flipped_byte;
      std::vector<float> biases;
      std::vector<std::int32_t> integer_biases;
      std::vector<std::int32_t> half_biases;
      for (const PackedRow& row : base_panels.packed) {
        biases.push_back(static_cast<float>(row.norm * row.norm / 2));
        const std::int32_t correction = flipped ? 256 * row.sum : 0;
        integer_biases.push_back(row.squares + (type == ElementType::u8 ? -correction : correction));
        half_biases.push_back(integer_biases.back() >> 1);
      }
      const std::size_t capacity = 2 * kernel.base_width;
      const std::size_t stride = capacity + 16;
      std::vector<float> scores(queries * stride);
      std::vector<std::uint32_t> list_rows(queries * stride);
      std::vector<std::uint32_t> counts(queries, 0);
      std::vector<float> cutoffs(query_panels.packed.size(), std::numeric_limits<float>::quiet_NaN());
      const auto score_of = [&](std::size_t q, std::size_t r) {
        double score = 0;
        for (std::size_t i = 0; i < dim; ++i) {
          const double y = base[r * dim + i];
          score += y * y / 2 - query[q * dim + i] * y;
        }
        return score;
      };
      // The cutoff equals the score of some row, which tells <= from <.
      for (std::size_t q = 0; q < queries; ++q) cutoffs[q] = static_cast<float>(score_of(q, q * 7 % rows));
      Owner owner = {std::vector<std::set<std::uint32_t>>(queries),
                     {scores.data(), list_rows.data(), counts.data(), cutoffs.data(), stride, capacity}};
      kernel.scan({.query_panels = query_panels.bytes.data(),
                   .query_panel_count = query_panels.packed.size() / kernel.query_width,
                   .first_query = 0,
                   .base_panels = base_panels.bytes.data(),
                   .biases = biases.data(),
                   .integer_biases = integer_biases.data(),
                   .half_biases = half_biases.data(),
                   .base_panel_count = base_panels.packed.size() / kernel.base_width,
                   .first_row = 1000,
                   .end_row = static_cast<std::uint32_t>(1000 + rows),
                   .row_bytes = encoded_row_bytes(kernel, dim),
                   .lists = owner.lists,
                   .make_room = Owner::make_room,
                   .owner = &owner});
      // Scores below 2^24 are exact; larger ones within a rounding error of the cutoff may pass or not.
      const double slack = dim <= 128 ? 0 : 64;
      for (std::size_t q = 0; q < queries; ++q) {
        Owner::make_room(&owner, q);
        for (std::size_t r = 0; r < rows; ++r) {
          const double score = score_of(q, r);
          if (std::abs(score - cutoffs[q]) < slack) continue;
          EXPECT_EQ(owner.found[q].contains(static_cast<std::uint32_t>(1000 + r)), score <= cutoffs[q])
              << name(type) << " dim " << dim << " query " << q << " row " << r;
        }
        for (const std::uint32_t row : owner.found[q]) EXPECT_LT(row, 1000 + rows);
      }
    }
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

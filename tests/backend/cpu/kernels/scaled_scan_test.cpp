// Vectors as scaled 8-bit integers: packing on every instruction set, and the scan where there is one,
// against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <set>
#include <vector>

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/rows/choose_scan.h"
#include "core/math/random.h"
#include "support/scan_panels.h"

namespace nearwise::cpu {
namespace {

std::vector<float> numbers_between(std::uint64_t seed, std::size_t count) {
  const Random random(seed);
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(random.normal(i));
  return out;
}

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  const auto* const begin = reinterpret_cast<const std::byte*>(values.data());
  return {begin, begin + values.size() * sizeof(float)};
}

class ScaledScan : public testing::TestWithParam<int> {
 protected:
  InstructionSet set() const { return available_instruction_sets()[static_cast<std::size_t>(GetParam())]; }

  struct Encoded {
    PackedRow measured;
    std::vector<int> integers;
  };
  Encoded encode_one(Encoding encoding, const std::vector<float>& row, const std::vector<float>& centre = {},
                     bool normalise = false) const {
    const std::size_t row_bytes = (row.size() + 3) / 4 * 4;
    std::vector<std::uint8_t> panel(row_bytes, 99);
    std::vector<std::byte> scratch(pack_scratch_bytes(row.size(), row_bytes));
    Encoded out;
    const std::size_t good = pack_function(
        set(), encoding, ElementType::f32)({.rows = reinterpret_cast<const std::byte*>(row.data()),
                                            .stride_bytes = row.size() * sizeof(float),
                                            .count = 1,
                                            .dim = row.size(),
                                            .width = 1,
                                            .row_bytes = row_bytes,
                                            .centre = centre.empty() ? nullptr : centre.data(),
                                            .normalise = normalise,
                                            .panel = reinterpret_cast<std::byte*>(panel.data()),
                                            .packed = &out.measured,
                                            .scratch = scratch.data()});
    if (good != 1) return {{.norm = std::nan("")}, {}};
    for (std::size_t i = 0; i < row.size(); ++i)
      out.integers.push_back(encoding == Encoding::scaled_unsigned_byte ? static_cast<int>(panel[i]) - 128
                                                                        : static_cast<std::int8_t>(panel[i]));
    for (std::size_t i = row.size(); i < row_bytes; ++i) EXPECT_EQ(panel[i], 0);
    return out;
  }
};

// Would catch: a residual that does not bound the loss, a scale that loses the largest element, a forgotten
// centre, a lost tail, another sum than that of the integers.
TEST_P(ScaledScan, PackingMeasuresWhatItLoses) {
  for (const Encoding encoding :
       {Encoding::scaled_byte, Encoding::scaled_unsigned_byte, Encoding::scaled_seven_bits}) {
    for (const std::size_t dim : {1, 3, 16, 17, 37, 128, 300}) {
      for (const double size : {1.0, 1e-25, 3e17}) {
        std::vector<float> row = numbers_between(dim, dim);
        for (float& value : row) value = static_cast<float>(value * size);
        std::vector<float> centre(dim, static_cast<float>(0.25 * size));
        const Encoded found = encode_one(encoding, row, centre);
        double squares = 0;
        double lost = 0;
        int sum = 0;
        int most = 0;
        for (std::size_t i = 0; i < dim; ++i) {
          const double y = static_cast<double>(found.measured.scale) * found.integers[i];
          const double exact = row[i] - centre[i];
          squares += y * y;
          lost += (exact - y) * (exact - y);
          sum += found.integers[i];
          most = std::max(most, std::abs(found.integers[i]));
        }
        EXPECT_EQ(most, encoding == Encoding::scaled_seven_bits ? 63 : 127);
        EXPECT_EQ(found.measured.sum, sum);
        EXPECT_NEAR(found.measured.norm, std::sqrt(squares), 1e-12 * std::sqrt(squares));
        EXPECT_GE(found.measured.residual, std::sqrt(lost));
        EXPECT_LE(found.measured.residual, std::sqrt(lost) * (1 + 1e-4) + 1e-6 * std::sqrt(squares) + 1e-20);
      }
    }
  }
}

// Would catch: infinite or meaningless scales of denormals, zeros and numbers whose squares overflow.
TEST_P(ScaledScan, PackingOfExtremes) {
  const Encoding encoding = Encoding::scaled_unsigned_byte;
  const Encoded zero = encode_one(encoding, std::vector<float>(21, 0.0F));
  EXPECT_EQ(zero.measured.norm, 0);
  EXPECT_EQ(zero.measured.residual, 0);
  const Encoded tiny = encode_one(encoding, std::vector<float>(21, 1e-42F));
  EXPECT_EQ(tiny.measured.norm, 0);
  EXPECT_GE(tiny.measured.residual, std::sqrt(21.0) * static_cast<double>(1e-42F));
  const Encoded huge = encode_one(encoding, std::vector<float>(21, 3e38F));
  EXPECT_GT(huge.measured.norm, 1e19);
  const Encoded beyond = encode_one(encoding, std::vector<float>(21, 3e38F), std::vector<float>(21, -3e38F));
  EXPECT_GT(beyond.measured.norm, 1e19);
  for (const float size : {1e-42F, 3e38F}) {
    const Encoded unit = encode_one(encoding, std::vector<float>(16, size), {}, true);
    EXPECT_NEAR(unit.measured.norm, 1, 1e-2);
    EXPECT_LT(unit.measured.residual, 1e-2);
  }
  std::vector<float> damaged(21, 1.0F);
  damaged.back() = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(encode_one(encoding, damaged).measured.norm));
}

// Every scan reports exactly the rows whose score, as documented, passes the cutoff. Would catch: slack or
// scales of other rows or queries, sums that start from another query's correction, reported padding.
TEST_P(ScaledScan, ReportsWhatPassesTheCutoff) {
  const auto kernel_of = [this](std::size_t dim) {
    return choose_screen(set(), Metric::sqeuclidean, ElementType::f32, ElementType::f32, dim);
  };
  if (!is_scaled(kernel_of(300).base_encoding)) GTEST_SKIP() << "no scan of scaled integers";
  for (const std::size_t dim : {32, 33, 35, 64, 65, 100, 128, 300}) {
    const ScanKernel kernel = kernel_of(dim);
    if (!is_scaled(kernel.base_encoding)) continue;
    const std::size_t rows = 2 * kernel.base_width + 5;
    const std::size_t queries = kernel.query_width + 3;
    const std::vector<float> base = numbers_between(1, rows * dim);
    const std::vector<float> query = numbers_between(2, queries * dim);
    const Panels query_panels =
        pack_panels(set(), kernel, true, bytes_of(query), ElementType::f32, queries, dim);
    const Panels base_panels = pack_panels(set(), kernel, false, bytes_of(base), ElementType::f32, rows, dim);
    const std::size_t places = base_panels.packed.size();
    std::vector<float> biases(places, std::numeric_limits<float>::infinity());
    std::vector<float> row_scales(places, 0.0F);
    std::vector<float> residuals(places, 0.0F);
    std::vector<Encoded> encoded_rows;
    for (std::size_t r = 0; r < rows; ++r) {
      biases[r] = static_cast<float>(base_panels.packed[r].norm * base_panels.packed[r].norm / 2);
      row_scales[r] = base_panels.packed[r].scale;
      residuals[r] = static_cast<float>(base_panels.packed[r].residual);
      encoded_rows.push_back(
          encode_one(Encoding::scaled_byte, {base.begin() + static_cast<std::ptrdiff_t>(r * dim),
                                             base.begin() + static_cast<std::ptrdiff_t>((r + 1) * dim)}));
    }
    std::vector<float> query_scales(query_panels.packed.size(), 0.0F);
    std::vector<std::int32_t> starts(query_panels.packed.size(), 0);
    std::vector<float> slack(query_panels.packed.size(), 0.0F);
    const std::size_t capacity = 2 * kernel.base_width;
    const std::size_t stride = capacity + 16;
    std::vector<float> scores(queries * stride);
    std::vector<std::uint32_t> list_rows(queries * stride);
    std::vector<std::uint32_t> counts(queries, 0);
    std::vector<float> cutoffs(query_panels.packed.size(), std::numeric_limits<float>::quiet_NaN());
    std::vector<std::vector<double>> expected(queries, std::vector<double>(rows));
    for (std::size_t q = 0; q < queries; ++q) {
      query_scales[q] = query_panels.packed[q].scale;
      if (kernel.base_encoding == Encoding::scaled_unsigned_byte)
        starts[q] = -128 * query_panels.packed[q].sum;
      slack[q] = 1.0F + static_cast<float>(q);
      const Encoded encoded =
          encode_one(kernel.query_encoding, {query.begin() + static_cast<std::ptrdiff_t>(q * dim),
                                             query.begin() + static_cast<std::ptrdiff_t>((q + 1) * dim)});
      for (std::size_t r = 0; r < rows; ++r) {
        int product = 0;
        for (std::size_t i = 0; i < dim; ++i) product += encoded.integers[i] * encoded_rows[r].integers[i];
        expected[q][r] = static_cast<double>(biases[r]) - static_cast<double>(slack[q]) * residuals[r] -
                         static_cast<double>(query_scales[q]) * row_scales[r] * product;
      }
      cutoffs[q] = static_cast<float>(expected[q][q * 7 % rows]);
    }
    Owner owner = {std::vector<std::set<std::uint32_t>>(queries),
                   {.scores = scores.data(),
                    .rows = list_rows.data(),
                    .counts = counts.data(),
                    .cutoffs = cutoffs.data(),
                    .stride = stride,
                    .capacity = capacity,
                    .slack_factors = slack.data()}};
    kernel.scan({.query_panels = query_panels.bytes.data(),
                 .query_panel_count = query_panels.packed.size() / kernel.query_width,
                 .first_query = 0,
                 .base_panels = base_panels.bytes.data(),
                 .biases = biases.data(),
                 .row_scales = row_scales.data(),
                 .row_residuals = residuals.data(),
                 .query_scales = query_scales.data(),
                 .query_starts = starts.data(),
                 .base_panel_count = places / kernel.base_width,
                 .first_row = 1000,
                 .end_row = static_cast<std::uint32_t>(1000 + rows),
                 .row_bytes = encoded_row_bytes(kernel, dim),
                 .lists = owner.lists,
                 .make_room = Owner::make_room,
                 .owner = &owner});
    for (std::size_t q = 0; q < queries; ++q) {
      Owner::make_room(&owner, q);
      for (std::size_t r = 0; r < rows; ++r) {
        if (std::abs(expected[q][r] - cutoffs[q]) < 1e-5 * static_cast<double>(dim)) continue;
        EXPECT_EQ(owner.found[q].contains(static_cast<std::uint32_t>(1000 + r)), expected[q][r] <= cutoffs[q])
            << "dim " << dim << " query " << q << " row " << r;
      }
      for (const std::uint32_t row : owner.found[q]) EXPECT_LT(row, 1000 + rows);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, ScaledScan,
                         testing::Range(0, static_cast<int>(available_instruction_sets().size())),
                         [](const auto& test) {
                           return std::string(
                               name(available_instruction_sets()[static_cast<std::size_t>(test.param)]));
                         });

}  // namespace
}  // namespace nearwise::cpu

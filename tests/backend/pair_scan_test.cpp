// Scans of rows against rows of the same set, at every instruction set that has one, against plain loops.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "backend/cpu/choose_scan.h"
#include "backend/cpu/kernels/kernels.h"
#include "core/random.h"
#include "support/scan_panels.h"

namespace nearwise::cpu {
namespace {

// Rows of one set that is cut into two groups, packed in both roles. Whole numbers make the scores exact.
struct SetOfRows {
  SetOfRows(InstructionSet set, const ScanKernel& scan, ElementType element_type, std::size_t count,
            std::size_t row_dim, Metric metric)
      : kernel(scan),
        type(element_type),
        rows(count),
        dim(row_dim),
        euclidean(metric != Metric::inner_product) {
    const Random random(17 + dim);
    const int low = type == ElementType::u8 ? 0 : -128;
    values.resize(rows * dim);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = low + static_cast<int>(random.below(i, 256));
    const std::vector<std::byte> bytes = encode(type, values);
    queries = pack_panels(set, kernel, true, bytes, type, rows, dim);
    base = pack_panels(set, kernel, false, bytes, type, rows, dim);
    for (std::size_t row = 0; row < base.packed.size(); ++row) {
      const PackedRow& packed = base.packed[row];
      const bool there = row < rows;  // empty places as prepare_rows leaves them
      const float bias = euclidean ? static_cast<float>(packed.norm * packed.norm / 2) : 0;
      biases.push_back(there ? bias : std::numeric_limits<float>::infinity());
      const std::int32_t squares = euclidean ? packed.squares : 0;
      integer_biases.push_back(there ? squares : std::numeric_limits<std::int32_t>::max());
      half_biases.push_back(integer_biases.back() >> 1);
    }
    cutoffs.assign(base.packed.size(), std::numeric_limits<float>::quiet_NaN());
    for (std::size_t row = 0; row < rows; ++row) {
      // Some rows want nothing, some everything; the others have the very score of a row as their cutoff.
      if (row % 13 == 5) continue;
      cutoffs[row] = row % 13 == 7 ? std::numeric_limits<float>::max()
                                   : static_cast<float>(score(row, (row * 7 + 1) % rows));
    }
  }

  // Of `row` as a candidate of `query`.
  double score(std::size_t query, std::size_t row) const {
    double sum = 0;
    for (std::size_t i = 0; i < dim; ++i) {
      const double y = values[row * dim + i];
      sum += (euclidean ? y * y / 2 : 0) - values[query * dim + i] * y;
    }
    return sum;
  }

  ScanKernel kernel;
  ElementType type;
  std::size_t rows;
  std::size_t dim;
  bool euclidean;
  std::vector<int> values;
  Panels queries;
  Panels base;
  std::vector<float> biases;
  std::vector<std::int32_t> integer_biases;
  std::vector<std::int32_t> half_biases;
  std::vector<float> cutoffs;
};

// Scans panels [query_panel, ...) against [base_panel, ...); they are the same for a group with itself.
void scan(const SetOfRows& set, Owner& owner, std::size_t query_panel, std::size_t query_panels,
          std::size_t base_panel, std::size_t base_panels) {
  const std::size_t width = set.kernel.base_width;
  const std::size_t panel_bytes = width * encoded_row_bytes(set.kernel, set.dim);
  PairScanArgs args;
  args.query_panels = set.queries.bytes.data() + query_panel * panel_bytes;
  args.query_panel_count = query_panels;
  args.first_query = query_panel * width;
  args.base_panels = set.base.bytes.data() + base_panel * panel_bytes;
  args.biases = set.biases.data() + base_panel * width;
  args.integer_biases = set.integer_biases.data() + base_panel * width;
  args.half_biases = set.half_biases.data() + base_panel * width;
  args.base_panel_count = base_panels;
  args.first_row = static_cast<std::uint32_t>(base_panel * width);
  args.end_row = static_cast<std::uint32_t>(set.rows);
  args.row_bytes = encoded_row_bytes(set.kernel, set.dim);
  args.lists = owner.lists;
  args.make_room = Owner::make_room;
  args.owner = &owner;
  args.query_biases = set.biases.data() + query_panel * width;
  args.integer_query_biases = set.integer_biases.data() + query_panel * width;
  args.half_query_biases = set.half_biases.data() + query_panel * width;
  args.diagonal = query_panel == base_panel;
  set.kernel.scan_pairs(args);
}

class PairScanTest : public testing::TestWithParam<int> {
 protected:
  InstructionSet set() const { return available_instruction_sets()[static_cast<std::size_t>(GetParam())]; }

  // All pairs of two groups: each with itself, then with each other, in either order of roles.
  void expect_all_pairs(const SetOfRows& rows, bool first_group_asks) const {
    const std::size_t panels = rows.base.packed.size() / rows.kernel.base_width;
    const std::size_t capacity = 2 * rows.kernel.base_width;
    const std::size_t stride = capacity + 16;
    std::vector<float> scores(rows.rows * stride);
    std::vector<std::uint32_t> list_rows(rows.rows * stride);
    std::vector<std::uint32_t> counts(rows.rows, 0);
    std::vector<float> cutoffs = rows.cutoffs;
    Owner owner = {std::vector<std::set<std::uint32_t>>(rows.rows),
                   {scores.data(), list_rows.data(), counts.data(), cutoffs.data(), stride, capacity}};
    const std::size_t half = (panels + 1) / 2;
    scan(rows, owner, 0, half, 0, half);
    if (panels > half) {
      scan(rows, owner, half, panels - half, half, panels - half);
      if (first_group_asks)
        scan(rows, owner, 0, half, half, panels - half);
      else
        scan(rows, owner, half, panels - half, 0, half);
    }
    // Below 2^24 everything is exact; beyond, scores within a rounding of the cutoff may go either way.
    const double slack = rows.dim <= 128 ? 0 : 64;
    for (std::size_t query = 0; query < rows.rows; ++query) {
      Owner::make_room(&owner, query);
      EXPECT_FALSE(owner.found[query].contains(static_cast<std::uint32_t>(query))) << query;
      for (const std::uint32_t row : owner.found[query]) EXPECT_LT(row, rows.rows);
      for (std::size_t row = 0; row < rows.rows; ++row) {
        if (row == query) continue;
        const double score = rows.score(query, row);
        if (std::abs(score - cutoffs[query]) < slack) continue;
        EXPECT_EQ(owner.found[query].contains(static_cast<std::uint32_t>(row)), score <= cutoffs[query])
            << "query " << query << " row " << row << " score " << score << " cutoff " << cutoffs[query];
      }
    }
  }
};

// Exactly the pairs whose score passes are reported, to each of the two rows by its own cutoff, once; never a row to
// itself, never an empty place. Catches exchanged biases or cutoffs, a diagonal that is looked at twice or not at all,
// a panel before the diagonal's that is left out, thresholds of the quick look that are too tight.
TEST_P(PairScanTest, ReportsEveryPairToBothRows) {
  int scans = 0;
  for (const ElementType type : {ElementType::f32, ElementType::u8, ElementType::i8})
    for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product})
      for (const std::size_t dim : {1UL, 31UL, 33UL, 64UL, 100UL, 128UL, 300UL, 520UL, 1030UL}) {
        const ScanKernel kernel = choose_scan(set(), metric, type, type, dim);
        if (kernel.scan_pairs == nullptr) continue;
        ASSERT_EQ(kernel.query_width, kernel.base_width);
        ASSERT_NE(kernel.query_encoding, Encoding::flipped_byte) << "the biases of this test know no flips";
        const std::size_t width = kernel.base_width;
        for (const std::size_t count : {1UL, 2UL, width - 1, width, width + 1, 3 * width + width / 2 + 1}) {
          if (dim > 128 && count < width) continue;
          SCOPED_TRACE(fmt::format("{} {} rows {} dim {}", name(type), name(metric), count, dim));
          const SetOfRows rows(set(), kernel, type, count, dim, metric);
          expect_all_pairs(rows, true);
          expect_all_pairs(rows, false);
          ++scans;
          if (HasFailure()) return;
        }
      }
  if (scans == 0) GTEST_SKIP() << "no such scan at this instruction set";
}

INSTANTIATE_TEST_SUITE_P(Sets, PairScanTest,
                         testing::Range(0, static_cast<int>(available_instruction_sets().size())),
                         [](const auto& test) {
                           return std::string(
                               name(available_instruction_sets()[static_cast<std::size_t>(test.param)]));
                         });

}  // namespace
}  // namespace nearwise::cpu

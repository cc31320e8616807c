// Self-join scans on every instruction set that has one against plain loops.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/rows/choose_scan.h"
#include "core/math/random.h"
#include "support/scan_panels.h"

namespace nearwise::cpu {
namespace {

// Vectors packed both as queries and as base.
struct PackedSet {
  PackedSet(InstructionSet set, const ScanKernel& scan, const std::vector<std::byte>& bytes, ElementType type,
            std::size_t count, std::size_t row_dim, Metric metric)
      : kernel(scan),
        rows(count),
        dim(row_dim),
        queries(pack_panels(set, kernel, true, bytes, type, rows, dim)),
        base(pack_panels(set, kernel, false, bytes, type, rows, dim)) {
    const bool euclidean = metric == Metric::sqeuclidean;
    for (std::size_t row = 0; row < base.packed.size(); ++row) {
      const PackedRow& packed = base.packed[row];
      const bool there = row < rows;  // padding as in prepare_rows
      const float bias = euclidean ? static_cast<float>(packed.norm * packed.norm / 2) : 0;
      biases.push_back(there ? bias : std::numeric_limits<float>::infinity());
      const std::int32_t squares = euclidean ? packed.squares : 0;
      integer_biases.push_back(there ? squares : std::numeric_limits<std::int32_t>::max());
      half_biases.push_back(integer_biases.back() >> 1);
    }
  }
  std::size_t panels() const { return base.packed.size() / kernel.base_width; }
  std::vector<float> no_cutoffs() const {
    return std::vector<float>(base.packed.size(), std::numeric_limits<float>::quiet_NaN());
  }

  ScanKernel kernel;
  std::size_t rows;
  std::size_t dim;
  Panels queries;
  Panels base;
  std::vector<float> biases;
  std::vector<std::int32_t> integer_biases;
  std::vector<std::int32_t> half_biases;
};

// Panels of queries and of base vectors.
struct Part {
  std::size_t query_panel;
  std::size_t query_panels;
  std::size_t base_panel;
  std::size_t base_panels;
};

PairScanArgs arguments(const PackedSet& set, const Part& part, Owner& owner) {
  const std::size_t width = set.kernel.base_width;
  const std::size_t panel_bytes = width * encoded_row_bytes(set.kernel, set.dim);
  PairScanArgs args;
  args.query_panels = set.queries.bytes.data() + part.query_panel * panel_bytes;
  args.query_panel_count = part.query_panels;
  args.first_query = part.query_panel * width;
  args.base_panels = set.base.bytes.data() + part.base_panel * panel_bytes;
  args.biases = set.biases.data() + part.base_panel * width;
  args.integer_biases = set.integer_biases.data() + part.base_panel * width;
  args.half_biases = set.half_biases.data() + part.base_panel * width;
  args.base_panel_count = part.base_panels;
  args.first_row = static_cast<std::uint32_t>(part.base_panel * width);
  args.end_row = static_cast<std::uint32_t>(set.rows);
  args.row_bytes = encoded_row_bytes(set.kernel, set.dim);
  args.lists = owner.lists;
  args.make_room = Owner::make_room;
  args.owner = &owner;
  args.query_biases = set.biases.data() + part.query_panel * width;
  args.integer_query_biases = set.integer_biases.data() + part.query_panel * width;
  args.half_query_biases = set.half_biases.data() + part.query_panel * width;
  args.diagonal = part.query_panel == part.base_panel;
  return args;
}

using Found = std::vector<std::set<std::uint32_t>>;

// All pairs of two groups: each with itself, then with each other, in either role.
Found scan_all_pairs(const PackedSet& set, std::vector<float> cutoffs, bool first_group_asks) {
  const std::size_t capacity = 2 * set.kernel.base_width;
  const std::size_t stride = capacity + 16;
  std::vector<float> scores(set.rows * stride);
  std::vector<std::uint32_t> rows(set.rows * stride);
  std::vector<std::uint32_t> counts(set.rows, 0);
  Owner owner = {Found(set.rows),
                 {scores.data(), rows.data(), counts.data(), cutoffs.data(), stride, capacity}};
  const std::size_t half = (set.panels() + 1) / 2;
  const std::size_t rest = set.panels() - half;
  set.kernel.scan_pairs(arguments(set, {0, half, 0, half}, owner));
  if (rest > 0) {
    set.kernel.scan_pairs(arguments(set, {half, rest, half, rest}, owner));
    const Part both = first_group_asks ? Part{0, half, half, rest} : Part{half, rest, 0, half};
    set.kernel.scan_pairs(arguments(set, both, owner));
  }
  for (std::size_t query = 0; query < set.rows; ++query) Owner::make_room(&owner, query);
  return owner.found;
}

// Scores [rows, rows] as ScanKernel::scan computes them, including rounding.
std::vector<float> scores_of_scan(const PackedSet& set) {
  const std::size_t capacity = set.rows + set.kernel.base_width;
  const std::size_t stride = capacity + 16;
  std::vector<float> cutoffs = set.no_cutoffs();
  std::fill_n(cutoffs.begin(), set.rows, std::numeric_limits<float>::max());
  std::vector<float> scores(set.rows * stride);
  std::vector<std::uint32_t> rows(set.rows * stride);
  std::vector<std::uint32_t> counts(set.rows, 0);
  Owner owner = {Found(set.rows),
                 {scores.data(), rows.data(), counts.data(), cutoffs.data(), stride, capacity}};
  set.kernel.scan(arguments(set, {0, set.panels(), 0, set.panels()}, owner));
  std::vector<float> by_row(set.rows * set.rows);
  for (std::size_t query = 0; query < set.rows; ++query) {
    EXPECT_EQ(counts[query], set.rows);
    for (std::size_t i = 0; i < counts[query]; ++i)
      by_row[query * set.rows + rows[query * stride + i]] = scores[query * stride + i];
  }
  return by_row;
}

class PairScanTest : public testing::TestWithParam<int> {
 protected:
  InstructionSet set() const { return available_instruction_sets()[static_cast<std::size_t>(GetParam())]; }
};

// Integers, so that scores are exact, and their scores by plain loops.
struct WholeNumbers {
  WholeNumbers(ElementType type, std::size_t row_count, std::size_t row_dim, Metric metric)
      : rows(row_count), dim(row_dim), euclidean(metric == Metric::sqeuclidean), values(rows * dim) {
    const Random random(17 + dim);
    const int low = type == ElementType::u8 ? 0 : -128;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = low + static_cast<int>(random.below(i, 256));
  }
  // Score of `row` as a candidate of `query`.
  double score(std::size_t query, std::size_t row) const {
    double sum = 0;
    for (std::size_t i = 0; i < dim; ++i) {
      const double y = values[row * dim + i];
      sum += (euclidean ? y * y / 2 : 0) - values[query * dim + i] * y;
    }
    return sum;
  }

  std::size_t rows;
  std::size_t dim;
  bool euclidean;
  std::vector<int> values;
};

void expect_pairs(const WholeNumbers& numbers, const std::vector<float>& cutoffs, const Found& found) {
  // Scores below 2^24 are exact; larger ones within a rounding error of the cutoff may pass or not.
  const double slack = numbers.dim <= 128 ? 0 : 64;
  for (std::size_t query = 0; query < numbers.rows; ++query) {
    EXPECT_FALSE(found[query].contains(static_cast<std::uint32_t>(query))) << query;
    for (const std::uint32_t row : found[query]) EXPECT_LT(row, numbers.rows);
    for (std::size_t row = 0; row < numbers.rows; ++row) {
      if (row == query) continue;
      const double score = numbers.score(query, row);
      if (std::abs(score - cutoffs[query]) < slack) continue;
      EXPECT_EQ(found[query].contains(static_cast<std::uint32_t>(row)), score <= cutoffs[query])
          << "query " << query << " row " << row << " score " << score << " cutoff " << cutoffs[query];
    }
  }
}

// Reports exactly the pairs whose score passes, once to each of the two vectors by its own cutoff; never a
// vector to itself, never padding. Would catch: exchanged biases or cutoffs, a diagonal scanned twice or not
// at all, a skipped panel next to the diagonal.
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
          const WholeNumbers numbers(type, count, dim, metric);
          const PackedSet rows(set(), kernel, encode(type, numbers.values), type, count, dim, metric);
          std::vector<float> cutoffs = rows.no_cutoffs();
          for (std::size_t row = 0; row < count; ++row) {
            // Some cutoffs pass nothing, some everything; the others equal the score of a row.
            if (row % 13 == 5) continue;
            cutoffs[row] = row % 13 == 7 ? std::numeric_limits<float>::max()
                                         : static_cast<float>(numbers.score(row, (row * 7 + 1) % count));
          }
          expect_pairs(numbers, cutoffs, scan_all_pairs(rows, cutoffs, true));
          expect_pairs(numbers, cutoffs, scan_all_pairs(rows, cutoffs, false));
          ++scans;
          if (HasFailure()) return;
        }
      }
  if (scans == 0) GTEST_SKIP() << "no such scan at this instruction set";
}

// Rounded scores at all scales, with cutoffs equal to scores: reports everything that ScanKernel::scan
// reports. Would catch: a threshold with rows and columns exchanged that is tighter than the scores.
TEST_P(PairScanTest, RoundingsLoseNoPair) {
  constexpr std::size_t rows = 131;
  int scans = 0;
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product})
    for (const double offset : {0.0, 3.0, 1000.0})
      for (const double scale : {1.0, 0x1p-40, 0x1p40})
        for (const std::size_t dim : {3UL, 40UL, 130UL}) {
          const ScanKernel kernel = choose_scan(set(), metric, ElementType::f32, ElementType::f32, dim);
          if (kernel.scan_pairs == nullptr) continue;
          SCOPED_TRACE(fmt::format("{} offset {} scale {} dim {}", name(metric), offset, scale, dim));
          const Random random(dim);
          std::vector<float> values(rows * dim);
          for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(scale * (offset + random.normal(i)));
          std::vector<std::byte> bytes(values.size() * sizeof(float));
          std::memcpy(bytes.data(), values.data(), bytes.size());
          const PackedSet packed(set(), kernel, bytes, ElementType::f32, rows, dim, metric);
          const std::vector<float> scores = scores_of_scan(packed);
          for (std::size_t turn = 0; turn < 16; ++turn) {
            std::vector<float> cutoffs = packed.no_cutoffs();
            // One row of a tile at a time and its best score only, so that no other score makes the tile a
            // hit.
            for (std::size_t row = turn; row < rows; row += 16) {
              float best = std::numeric_limits<float>::max();
              for (std::size_t other = 0; other < rows; ++other)
                if (other != row) best = std::min(best, scores[row * rows + other]);
              cutoffs[row] = best;
            }
            const Found found = scan_all_pairs(packed, cutoffs, turn % 2 == 0);
            for (std::size_t query = 0; query < rows; ++query)
              for (std::size_t row = 0; row < rows; ++row)
                EXPECT_EQ(found[query].contains(static_cast<std::uint32_t>(row)),
                          row != query && scores[query * rows + row] <= cutoffs[query])
                    << "query " << query << " row " << row;
          }
          ++scans;
          if (HasFailure()) return;
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

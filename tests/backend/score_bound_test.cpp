// The inequalities of docs/algorithms/certified-search.md, checked on vectors packed and multiplied in f32 with
// deliberately bad orders of summation, against long double. A bound that forgets a term fails here long before a
// search loses a neighbour.
#include "backend/cpu/score_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/distance.h"
#include "core/random.h"

namespace nearwise::cpu {
namespace {

struct Pair {
  std::vector<float> query;
  std::vector<float> row;
  std::vector<float> centre;
};

struct Packed {
  std::vector<float> query;
  std::vector<float> row;
  double query_norm = 0;
  double row_norm = 0;
};

double norm_of(const std::vector<float>& x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

std::vector<float> scaled(const std::vector<float>& x) {
  const double norm = norm_of(x);
  std::vector<float> out;
  for (const float value : x) out.push_back(norm > 0 ? static_cast<float>(value / norm) : value);
  return out;
}

Packed pack(Metric metric, const Pair& pair) {
  Packed packed = {pair.query, pair.row};
  if (metric == Metric::cosine) {
    packed.query = scaled(pair.query);
    packed.row = scaled(pair.row);
    packed.query_norm = norm_of(packed.query) > 0 ? 1 : 0;
    packed.row_norm = norm_of(packed.row) > 0 ? 1 : 0;
    return packed;
  }
  if (metric != Metric::inner_product) {
    for (std::size_t i = 0; i < pair.query.size(); ++i) {
      packed.query[i] = pair.query[i] - pair.centre[i];
      packed.row[i] = pair.row[i] - pair.centre[i];
    }
  }
  packed.query_norm = norm_of(packed.query);
  packed.row_norm = norm_of(packed.row);
  return packed;
}

// One accumulator, no FMA: the order with the largest error that a kernel could use.
float score_of(Metric metric, const Packed& packed) {
  const bool biased = metric == Metric::sqeuclidean || metric == Metric::euclidean;
  float score = biased ? static_cast<float>(packed.row_norm * packed.row_norm / 2) : 0.0F;
  for (std::size_t i = 0; i < packed.query.size(); ++i) {
    const float product = packed.query[i] * packed.row[i];
    score -= product;
  }
  return score;
}

// The sort key by definition, from the original vectors.
float key_of(Metric metric, const Pair& pair) {
  double sums[3][distance_lanes] = {};
  for (std::size_t i = 0; i < pair.query.size(); ++i) {
    const double q = pair.query[i];
    const double y = pair.row[i];
    const bool difference = metric == Metric::sqeuclidean || metric == Metric::euclidean;
    sums[0][i % distance_lanes] += difference ? (q - y) * (q - y) : q * y;
    sums[1][i % distance_lanes] += q * q;
    sums[2][i % distance_lanes] += y * y;
  }
  return sort_key(metric,
                  reported(metric, sum_of_lanes(sums[0]), sum_of_lanes(sums[1]), sum_of_lanes(sums[2])));
}

Pair random_pair(std::uint64_t seed, std::size_t dim) {
  const Random random(seed, 17);
  std::uint64_t next = 0;
  const int kind = static_cast<int>(seed % 6);
  const double scales[] = {1, 1e-3, 1e-20, 1e15, 1e4, 1e-41};
  const double offset = kind == 4 ? 1e4 : 0;
  const double nearness = seed % 3 == 0 ? 1e-6 : 1;  // every third pair is nearly a duplicate
  Pair pair;
  for (std::size_t i = 0; i < dim; ++i) {
    const double scale = kind == 4 ? 1 : scales[kind];
    const double q = offset + scale * random.normal(next++);
    pair.query.push_back(static_cast<float>(q));
    pair.row.push_back(static_cast<float>(nearness == 1 ? offset + scale * random.normal(next++)
                                                        : q + nearness * scale * random.normal(next++)));
    pair.centre.push_back(static_cast<float>(offset + 0.1 * scale * random.normal(next++)));
  }
  return pair;
}

class ScoreBoundTest : public testing::TestWithParam<Metric> {};

// A row is never dropped by a limit that its own reported key meets: catches any missing error term.
TEST_P(ScoreBoundTest, KeepsRowsThatTieWithTheLimit) {
  const Metric metric = GetParam();
  for (const std::size_t dim : {1, 3, 8, 33, 128, 1000}) {
    const ScoreBound bound(metric, dim);
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      const Pair pair = random_pair(seed, dim);
      const Packed packed = pack(metric, pair);
      const float score = score_of(metric, packed);
      const double limit = bound.limit_from_key(key_of(metric, pair));
      EXPECT_LE(score, bound.cutoff(packed.query_norm, packed.row_norm, limit))
          << "seed " << seed << " dim " << dim;
    }
  }
}

// The limit made of a score admits the key of the row that the score belongs to.
TEST_P(ScoreBoundTest, LimitOfAScoreCoversItsOwnKey) {
  const Metric metric = GetParam();
  for (const std::size_t dim : {1, 3, 8, 33, 128, 1000}) {
    const ScoreBound bound(metric, dim);
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      const Pair pair = random_pair(seed, dim);
      const Packed packed = pack(metric, pair);
      const double limit =
          bound.limit_from_score(packed.query_norm, packed.row_norm, score_of(metric, packed));
      const double key = key_of(metric, pair);
      EXPECT_LE(metric == Metric::euclidean ? key * key : key, limit) << "seed " << seed << " dim " << dim;
    }
  }
}

// The bound must also be of use: random rows at typical distances are told apart from the nearest ones.
TEST_P(ScoreBoundTest, DropsRowsThatAreClearlyWorse) {
  const Metric metric = GetParam();
  const std::size_t dim = 128;
  const ScoreBound bound(metric, dim);
  int dropped = 0;
  for (std::uint64_t seed = 0; seed < 600; seed += 6) {  // scale 1, no offset
    const Pair far = random_pair(seed + (seed % 3 == 0 ? 6 * 1000 + 6 : 0), dim);
    Pair near = far;
    near.row = far.query;
    near.row[0] += 0.01F;
    Pair apart = far;
    for (std::size_t i = 0; i < dim; ++i) apart.row[i] = -far.query[i];
    const double limit = bound.limit_from_key(key_of(metric, near));
    const Packed packed = pack(metric, apart);
    dropped += score_of(metric, packed) > bound.cutoff(packed.query_norm, packed.row_norm, limit) ? 1 : 0;
  }
  EXPECT_EQ(dropped, 100);
}

TEST_P(ScoreBoundTest, NoLimitLetsEverythingPass) {
  const ScoreBound bound(GetParam(), 16);
  EXPECT_EQ(bound.cutoff(1, 1, std::numeric_limits<double>::infinity()), std::numeric_limits<float>::max());
  EXPECT_FALSE(ScoreBound::holds_for(1, 1e19));
  EXPECT_FALSE(ScoreBound::holds_for(std::numeric_limits<double>::infinity(), 1));
  EXPECT_TRUE(ScoreBound::holds_for(1e18, 1e18));
}

INSTANTIATE_TEST_SUITE_P(Metrics, ScoreBoundTest,
                         testing::Values(Metric::sqeuclidean, Metric::euclidean, Metric::inner_product,
                                         Metric::cosine),
                         [](const auto& test) { return std::string(name(test.param)); });

}  // namespace
}  // namespace nearwise::cpu

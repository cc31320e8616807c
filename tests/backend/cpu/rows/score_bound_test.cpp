// The inequalities of docs/algorithms/certified-search.md for vectors packed in f32, bf16 and scaled
// integers, multiplied with the worst orders of summation, against exact distances. A bound that lacks a term
// fails here long before a search misses a neighbor.
#include "core/math/score_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "core/distance.h"
#include "core/math/random.h"

namespace nearwise {
namespace {

struct Pair {
  std::vector<float> query;
  std::vector<float> row;
  std::vector<float> centre;
};

struct Packed {
  std::vector<float> query;
  std::vector<float> row;
  Lengths query_lengths = {};
  Lengths row_lengths = {};
  float slack = 0;  // slack_factor of the score
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

float to_bf16(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000;
  return (bits & 0x7F800000) == 0 ? 0.0F : std::bit_cast<float>(bits);
}

// 11 significant bits, as in TF32.
float to_tf32(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  bits = (bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000;
  return (bits & 0x7F800000) == 0 ? 0.0F : std::bit_cast<float>(bits);
}

// Tensor cores support both: alternates between TF32 and bf16 by dimension.
float to_tensor_core(float value, std::size_t dim) { return dim % 2 == 0 ? to_tf32(value) : to_bf16(value); }

float rounded_to_zero(double value) {
  const auto nearest = static_cast<float>(value);
  return std::abs(static_cast<double>(nearest)) > std::abs(value) ? std::nextafter(nearest, 0.0F) : nearest;
}

// Summation of tensor cores: a group of products and the running sum are aligned to the largest of them and
// truncated to 24 bits.
float add_by_groups(const std::vector<double>& terms, std::size_t group) {
  double sum = 0;
  for (std::size_t first = 0; first < terms.size(); first += group) {
    const std::size_t end = std::min(terms.size(), first + group);
    double largest = std::abs(sum);
    for (std::size_t i = first; i < end; ++i) largest = std::max(largest, std::abs(terms[i]));
    if (largest == 0) continue;
    const double unit = std::ldexp(1.0, std::ilogb(largest) - 23);
    const auto cut = [&](double value) { return std::trunc(value / unit) * unit; };
    double total = cut(sum);
    for (std::size_t i = first; i < end; ++i) total += cut(terms[i]);
    sum = rounded_to_zero(total);
  }
  return static_cast<float>(sum);
}

float flushed(Products products, float value) {
  return products != Products::f32 && std::abs(value) < 0x1p-126F ? 0.0F : value;
}

// Rounds a vector to the encoding and computes its lengths.
Lengths encode(Products products, std::vector<float>& vector) {
  double lost = 0;
  float most = 0;
  for (const float value : vector) most = std::max(most, std::abs(value));
  const float scale = most < 1e-30F ? 0.0F : most / 127;
  for (float& value : vector) {
    const float rounded = products == Products::bf16        ? to_bf16(value)
                          : products == Products::truncated ? to_tensor_core(value, vector.size())
                          : products == Products::scaled_integers
                              ? (scale == 0 ? 0.0F : std::nearbyint(value / scale) * scale)
                              : flushed(products, value);
    lost += (static_cast<double>(value) - rounded) * (static_cast<double>(value) - rounded);
    value = rounded;
  }
  return {norm_of(vector), std::sqrt(lost) * (1 + 1e-12)};
}

Packed pack(Metric metric, Products products, const Pair& pair) {
  Packed packed = {pair.query, pair.row};
  if (metric == Metric::cosine) {
    packed.query = scaled(pair.query);
    packed.row = scaled(pair.row);
  } else if (metric != Metric::inner_product) {
    for (std::size_t i = 0; i < pair.query.size(); ++i) {
      packed.query[i] = pair.query[i] - pair.centre[i];
      packed.row[i] = pair.row[i] - pair.centre[i];
    }
  }
  packed.query_lengths = encode(products, packed.query);
  packed.row_lengths = encode(products, packed.row);
  if (products == Products::scaled_integers)
    packed.row_lengths.residual =
        std::nextafter(static_cast<float>(packed.row_lengths.residual), std::numeric_limits<float>::max());
  return packed;
}

// One accumulator, no FMA: the order with the largest error that a kernel could use. Matrix units flush
// denormals.
float score_of(Metric metric, Products products, const Packed& packed) {
  const bool biased = metric == Metric::sqeuclidean || metric == Metric::euclidean;
  const auto flush = [&](float value) { return flushed(products, value); };
  const double norm = packed.row_lengths.norm;
  const float bias = flush(biased ? static_cast<float>(norm * norm / 2) : 0.0F);
  if (products == Products::scaled_integers) {
    double product = 0;
    for (std::size_t i = 0; i < packed.query.size(); ++i)
      product += static_cast<double>(packed.query[i]) * packed.row[i];
    const double residual = packed.row_lengths.residual;
    const auto own_bias = static_cast<float>(biased ? (norm * norm - residual * residual) / 2 : 0);
    const float covered = packed.slack * static_cast<float>(residual);
    return own_bias - covered - static_cast<float>(product);
  }
  if (products == Products::truncated) {
    std::vector<double> terms;
    for (std::size_t i = 0; i < packed.query.size(); ++i)
      terms.push_back(static_cast<double>(packed.query[i]) * packed.row[i]);
    double rest = biased ? norm * norm / 2 : 0.0;
    for (int part = 0; part < 3; ++part) {
      const float taken = to_tensor_core(static_cast<float>(rest), packed.query.size());
      terms.push_back(-static_cast<double>(taken));
      rest -= taken;
    }
    return flush(-add_by_groups(terms, 1 + packed.query.size() % 16));
  }
  float sum = products == Products::bf16 ? 0.0F : -bias;
  for (std::size_t i = 0; i < packed.query.size(); ++i) {
    const float product = flush(packed.query[i] * packed.row[i]);
    sum = flush(sum + product);
  }
  return products == Products::bf16 ? bias - sum : -sum;
}

// Sort key by definition, from the original vectors.
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

class ScoreBoundTest : public testing::TestWithParam<std::tuple<Metric, Products>> {
 protected:
  Metric metric() const { return std::get<0>(GetParam()); }
  Products products() const { return std::get<1>(GetParam()); }
};

// A vector is never dropped by the limit of its own reported key. Would catch: any missing error term.
TEST_P(ScoreBoundTest, KeepsRowsThatTieWithTheLimit) {
  for (const std::size_t dim : {1, 3, 8, 33, 128, 1000, 4096, 4097}) {
    const ScoreBound bound(metric(), products(), dim);
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      const Pair pair = random_pair(seed, dim);
      Packed packed = pack(metric(), products(), pair);
      const double limit = bound.limit_from_key(key_of(metric(), pair));
      packed.slack = bound.slack_factor(packed.query_lengths, packed.row_lengths, limit);
      const float score = score_of(metric(), products(), packed);
      EXPECT_LE(score, bound.cutoff(packed.query_lengths, packed.row_lengths, limit))
          << "seed " << seed << " dim " << dim;
    }
  }
}

// The same for scores that were computed under a limit that has fallen since, or none.
TEST_P(ScoreBoundTest, ScoresStayValidAsTheLimitFalls) {
  constexpr double none = std::numeric_limits<double>::infinity();
  for (const std::size_t dim : {1, 33, 128}) {
    const ScoreBound bound(metric(), products(), dim);
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      const Pair pair = random_pair(seed, dim);
      Packed packed = pack(metric(), products(), pair);
      const double limit = bound.limit_from_key(key_of(metric(), pair));
      for (const double before : {none, limit + 1e-3 * std::abs(limit), limit + 3 * std::abs(limit)}) {
        packed.slack = bound.slack_factor(packed.query_lengths, packed.row_lengths, before);
        EXPECT_LE(score_of(metric(), products(), packed),
                  bound.cutoff(packed.query_lengths, packed.row_lengths, limit))
            << "seed " << seed << " dim " << dim << " before " << before;
      }
    }
  }
}

// The limit derived from a vector's score admits the vector's key.
TEST_P(ScoreBoundTest, LimitOfAScoreCoversItsOwnKey) {
  for (const std::size_t dim : {1, 3, 8, 33, 128, 1000, 4096, 4097}) {
    const ScoreBound bound(metric(), products(), dim);
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      const Pair pair = random_pair(seed, dim);
      Packed packed = pack(metric(), products(), pair);
      packed.slack = bound.slack_factor(packed.query_lengths, packed.row_lengths,
                                        std::numeric_limits<double>::infinity());
      const float score = score_of(metric(), products(), packed);
      const double limit = bound.limit_from_score(packed.query_lengths, packed.row_lengths, score);
      const double by_slack =
          bound.limit_from_score(packed.query_lengths, packed.row_lengths, score, packed.slack);
      const double key = key_of(metric(), pair);
      const double value = metric() == Metric::euclidean ? key * key : key;
      EXPECT_LE(value, by_slack) << "seed " << seed << " dim " << dim;
      EXPECT_LE(by_slack, limit) << "seed " << seed << " dim " << dim;
    }
  }
}

// The bound is tight enough to exclude random vectors at typical distances.
TEST_P(ScoreBoundTest, DropsRowsThatAreClearlyWorse) {
  const std::size_t dim = 128;
  const ScoreBound bound(metric(), products(), dim);
  int dropped = 0;
  for (std::uint64_t seed = 0; seed < 600; seed += 6) {  // scale 1, no offset
    const Pair far = random_pair(seed + (seed % 3 == 0 ? 6 * 1000 + 6 : 0), dim);
    Pair near = far;
    near.row = far.query;
    near.row[0] += 0.01F;
    Pair apart = far;
    for (std::size_t i = 0; i < dim; ++i) apart.row[i] = -far.query[i];
    const double limit = bound.limit_from_key(key_of(metric(), near));
    Packed packed = pack(metric(), products(), apart);
    packed.slack = bound.slack_factor(packed.query_lengths, packed.row_lengths, limit);
    dropped +=
        score_of(metric(), products(), packed) > bound.cutoff(packed.query_lengths, packed.row_lengths, limit)
            ? 1
            : 0;
  }
  EXPECT_EQ(dropped, 100);
}

TEST_P(ScoreBoundTest, NoLimitLetsEverythingPass) {
  const ScoreBound bound(metric(), products(), 16);
  EXPECT_EQ(bound.cutoff({1}, {1}, std::numeric_limits<double>::infinity()),
            std::numeric_limits<float>::max());
  EXPECT_FALSE(ScoreBound::holds_for({1}, {1e19}));
  EXPECT_FALSE(ScoreBound::holds_for({std::numeric_limits<double>::infinity()}, {1}));
  EXPECT_TRUE(ScoreBound::holds_for({1e18}, {1e18}));
}

std::string case_name(const testing::TestParamInfo<std::tuple<Metric, Products>>& test) {
  constexpr const char* names[] = {"_f32", "_flushed_f32", "_bf16", "_truncated", "_integers", "_scaled"};
  const auto [metric, products] = test.param;
  return std::string(name(metric)) + names[static_cast<int>(products)];
}

INSTANTIATE_TEST_SUITE_P(Metrics, ScoreBoundTest,
                         testing::Combine(testing::Values(Metric::sqeuclidean, Metric::euclidean,
                                                          Metric::inner_product, Metric::cosine),
                                          testing::Values(Products::f32, Products::flushed_f32,
                                                          Products::bf16, Products::truncated,
                                                          Products::scaled_integers)),
                         case_name);

}  // namespace
}  // namespace nearwise

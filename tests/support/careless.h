// Searches as they are often written, without a bound on their error. A set on which one of them is wrong has
// teeth; a set on which all are right proves nothing about the one that is careful.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "oracle/knn.h"
#include "support/attacks.h"

namespace nearwise::support {

enum class Careless : std::uint8_t {
  product_f32,  // sorts by |x|^2 + |y|^2 - 2xy, or xy, in f32
  bf16_rerank,  // by that of the bf16 roundings, denormals taken for zero; the best 4 k get an exact look
  int8_rerank,  // by that of int8 on one scale; the best 4 k get an exact look
};

inline std::string_view name(Careless search) {
  switch (search) {
    case Careless::product_f32: return "product_f32";
    case Careless::bf16_rerank: return "bf16_rerank";
    case Careless::int8_rerank: return "int8_rerank";
  }
  return "unknown";
}

// The numbers as that search sees them.
inline std::vector<float> seen_by(Careless search, const std::vector<double>& values, double largest) {
  std::vector<float> seen(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (search == Careless::product_f32) seen[i] = static_cast<float>(values[i]);
    if (search == Careless::bf16_rerank)
      seen[i] = std::fabs(values[i]) < 0x1p-126 ? 0.0F : static_cast<float>(to_bf16(values[i]));
    if (search == Careless::int8_rerank)
      seen[i] = static_cast<float>(std::nearbyint(values[i] / largest * 127.0) * largest / 127.0);
  }
  return seen;
}

// Ids of the k best, [queries, k], ties by the lower id; sqeuclidean or inner_product.
inline std::vector<Id> careless_ids(Careless search, RowsView queries, RowsView base, std::size_t k,
                                    Metric metric) {
  const std::size_t dim = base.dim();
  const std::vector<double> query_values = oracle::to_doubles(queries);
  const std::vector<double> base_values = oracle::to_doubles(base);
  double largest = 0;
  for (const double value : query_values) largest = std::max(largest, std::fabs(value));
  for (const double value : base_values) largest = std::max(largest, std::fabs(value));
  const std::vector<float> seen_queries = seen_by(search, query_values, largest);
  const std::vector<float> seen_base = seen_by(search, base_values, largest);
  const auto dot = [&](const float* left, const float* right) {
    float sum = 0;
    for (std::size_t i = 0; i < dim; ++i) sum += left[i] * right[i];
    return sum;
  };
  const auto by_order = [metric](const oracle::Candidate& left, const oracle::Candidate& right) {
    return oracle::better(metric, left, right);
  };
  const bool reranks = search != Careless::product_f32;
  std::vector<Id> ids;
  std::vector<oracle::Candidate> candidates;
  for (std::size_t query = 0; query < queries.rows(); ++query) {
    const float* x = seen_queries.data() + query * dim;
    candidates.clear();
    for (std::size_t row = 0; row < base.rows(); ++row) {
      const float* y = seen_base.data() + row * dim;
      const float product = dot(x, y);
      const float score = metric == Metric::inner_product ? product : dot(x, x) + dot(y, y) - 2.0F * product;
      candidates.push_back({score, static_cast<Id>(row)});
    }
    std::sort(candidates.begin(), candidates.end(), by_order);
    if (reranks) {
      candidates.resize(std::min(candidates.size(), 4 * k));
      for (oracle::Candidate& candidate : candidates)
        candidate.value =
            oracle::reported(metric, {query_values.data() + query * dim, dim},
                             {base_values.data() + static_cast<std::size_t>(candidate.id) * dim, dim});
      std::sort(candidates.begin(), candidates.end(), by_order);
    }
    for (std::size_t rank = 0; rank < k; ++rank) ids.push_back(candidates[rank].id);
  }
  return ids;
}

}  // namespace nearwise::support

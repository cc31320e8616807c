// Reported distance of two rows (core/distance.h) by a group of eight threads.
#pragma once

#include <cstdint>

#include "backend/cuda/warp/group_sum.cuh"
#include "core/convert.h"
#include "core/distance.h"

namespace nearwise::gpu {

// sort_key() of the distance, in every thread of the group; lane: index in the group. Called by all lanes of
// a warp.
template <typename Left, typename Right>
__device__ __forceinline__ float pair_key(Metric metric, const Left* left, const Right* right,
                                          std::uint32_t dim, std::uint32_t lane) {
  double sum = 0;
  double left_norm = 0;
  double right_norm = 0;
  if (is_euclidean(metric)) {
    for (std::uint32_t i = lane; i < dim; i += sum_group) {
      const double difference =
          static_cast<double>(to_float(left[i])) - static_cast<double>(to_float(right[i]));
      sum += difference * difference;
    }
  } else {
    for (std::uint32_t i = lane; i < dim; i += sum_group) {
      const double x = to_float(left[i]);
      const double y = to_float(right[i]);
      sum += x * y;
      left_norm += x * x;
      right_norm += y * y;
    }
  }
  sum = group_sum(sum);
  if (metric == Metric::cosine) {
    left_norm = group_sum(left_norm);
    right_norm = group_sum(right_norm);
  }
  return sort_key(metric, reported(metric, sum, left_norm, right_norm));
}

}  // namespace nearwise::gpu

// The bound that makes a join by partitions complete: which partitions a vector must be copied into. The
// proof is in docs/algorithms/plans.md, "Partitions".
//
// Let x be at home in partition P and y in Q: the centroids with their smallest reported distances. The
// signed distance of a vector v to the bisector of P and Q, (|v - c_P|^2 - |v - c_Q|^2) / (2 |c_P - c_Q|), is
// at most 0 at x and changes between x and y by at most |x - y|. So if |x - y| <= radius, it is at most
// `radius` at y, and y is copied into P.
//
// All of it holds for real numbers. Reported distances are rounded: every comparison is made with the bounds
// of the true value that lets more vectors be copied. For cosine, vectors are the normalized ones, whose
// squared distance is 2 (1 - cos).
#pragma once

#include <cstddef>
#include <span>

#include "nearwise/types.h"

namespace nearwise::plan {

class PartitionReach {
 public:
  // For pairs whose reported distance is at most `threshold`. Not for inner_product, which has no bisectors.
  PartitionReach(Metric metric, float threshold, std::size_t dim);

  // Of the reported distances to centroids: sqeuclidean or cosine. No centroid is zero for cosine.
  Metric metric() const { return metric_; }
  // At least the true Euclidean distance of every pair within the threshold.
  double radius() const { return radius_; }

  // A vector whose home has the reported distance `home` is within reach of no partition at a larger reported
  // distance than this. between: at least that of the home and any of these partitions, or infinity.
  float limit(float home, float between) const;
  // home, other: the reported distances of a vector to the centroids of its home and of another partition,
  // between: at least the true squared distance of the two. False only if it is proven that no vector at home
  // in the other partition forms a pair with this one.
  bool reaches(float home, float other, float between) const;
  // At least the true squared Euclidean distance of two centroids.
  float between(std::span<const float> left, std::span<const float> right) const;

 private:
  // Bounds of the true squared Euclidean distance.
  double upper(double reported) const;
  double lower(double reported) const;
  // At least the distance of a pair's other vector to this one's home.
  double farthest(float home) const;
  // At least the difference of the squared distances of a vector to two centroids of which rounding has made
  // the farther one its home.
  double tie(double farthest) const;

  Metric metric_;
  double scale_;      // squared Euclidean distance of a reported distance
  double precision_;  // absolute error of a reported distance, times scale_
  double radius_;
};

}  // namespace nearwise::plan

#include "plan/partition/train_centroids.h"

#include <algorithm>

#include "nearwise/kmeans.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

Matrix<float> train_centroids(const Context& context, Metric metric, const RowsView& sample,
                              std::size_t partitions) {
  const KMeansOptions options = {.metric = metric, .iterations = graph::training_iterations, .tolerance = 0};
  const auto training = partitions <= GraphShape::flat_partitions ? train_kmeans : train_hierarchical_kmeans;
  const std::size_t step =
      std::max<std::size_t>(1, sample.rows() / (partitions * GraphShape::rows_per_partition));
  const RowsView some(sample.data(), sample.type(), sample.rows() / step, sample.dim(),
                      sample.stride_bytes() * step);
  return training(context, some, partitions, options).centroids;
}

}  // namespace nearwise::plan

// Mini-batch k-means for files larger than memory: its memory depends on the batch size, not on the number of
// rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/kmeans.h"
#include "nearwise/matrix.h"

namespace nearwise::cluster {

// Consecutive rows, so that a file is read in pieces.
struct RowBlock {
  std::size_t first = 0;
  std::size_t count = 0;
};

// One block from each of equal parts of the rows, ascending, about batch_size rows in all; there must be more
// rows than that. Centroids are seeded from batch 0.
std::vector<RowBlock> blocks_of_batch(std::uint64_t seed, std::size_t rows, std::size_t batch_size,
                                      std::size_t batch);

// Minimum budget in bytes.
std::uint64_t mini_batch_bytes(const Context& context, const RowsView& rows, std::size_t clusters,
                               const KMeansOptions& options);

// The caller has checked the arguments; drawn rows are checked for NaN here.
KMeans train_mini_batches(const Context& context, const RowsView& rows, std::size_t clusters,
                          const KMeansOptions& options);

}  // namespace nearwise::cluster

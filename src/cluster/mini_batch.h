// k-means on batches of rows, for files far beyond memory: what it keeps depends on the batch, not on the number of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/progress.h"
#include "nearwise/context.h"
#include "nearwise/kmeans.h"
#include "nearwise/matrix.h"

namespace nearwise::cluster {

// Rows that follow each other, so that a file is read in pieces.
struct RowBlock {
  std::size_t first = 0;
  std::size_t count = 0;
};

// One block from each of equal parts of the rows, ascending: about batch_size rows, of which there are more. Batch 0 is the
// one that centroids are seeded from.
std::vector<RowBlock> blocks_of_batch(std::uint64_t seed, std::size_t rows, std::size_t batch_size,
                                      std::size_t batch);

// Bytes on the budget, at the least.
std::uint64_t mini_batch_bytes(const Context& context, const RowsView& rows, std::size_t clusters,
                               const KMeansOptions& options);

// Arguments have been checked, but not whether rows are finite: that is asked of the rows that are drawn. progress counts pairs of
// rows and centroids.
KMeans train_mini_batches(const Context& context, const RowsView& rows, std::size_t clusters,
                          const KMeansOptions& options, ProgressMeter& progress);

}  // namespace nearwise::cluster

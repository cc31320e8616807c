// Centroids to begin with.
#pragma once

#include <cstdint>

#include "nearwise/context.h"
#include "nearwise/kmeans.h"
#include "nearwise/matrix.h"

namespace nearwise::cluster {

// Throws Error(invalid_argument) where a row that seeding looks at has NaN or infinity, naming it.
void check_sample(const char* operation, const Context& context, const RowsView& rows, std::size_t clusters,
                  const KMeansOptions& options);

// Bytes on the budget while centroids are seeded, at the least.
std::uint64_t seeding_bytes(const Context& context, const RowsView& rows, std::size_t clusters,
                            const KMeansOptions& options);

// Writes rows, of length 1 for spherical metrics, to `centroids` [clusters, dim].
void seed_centroids(const Context& context, const RowsView& rows, const KMeansOptions& options,
                    MatrixView<float> centroids);

}  // namespace nearwise::cluster

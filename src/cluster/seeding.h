// Initial centroids.
#pragma once

#include <cstdint>

#include "nearwise/context.h"
#include "nearwise/kmeans.h"
#include "nearwise/matrix.h"

namespace nearwise::cluster {

// Throws Error(invalid_argument) naming the first row of the seeding sample with NaN or infinity.
void check_sample(const char* operation, const Context& context, const RowsView& rows, std::size_t clusters,
                  const KMeansOptions& options);

// Minimum budget in bytes.
std::uint64_t seeding_bytes(const Context& context, const RowsView& rows, std::size_t clusters,
                            const KMeansOptions& options);

// As training_cost() (cluster/training.h).
double seeding_cost(const RowsView& rows, std::size_t clusters, const KMeansOptions& options);

// Writes drawn rows, normalized for spherical metrics, to `centroids` [clusters, dim].
void seed_centroids(const Context& context, const RowsView& rows, const KMeansOptions& options,
                    MatrixView<float> centroids);

}  // namespace nearwise::cluster

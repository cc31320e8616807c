// Lloyd's iterations. The caller has checked the rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nearwise/context.h"
#include "nearwise/kmeans.h"
#include "nearwise/matrix.h"

namespace nearwise::cluster {

// Minimum budget in bytes.
std::uint64_t training_bytes(const Context& context, const RowsView& rows, std::size_t clusters,
                             const KMeansOptions& options);

// Expected duration for shares of progress: distances computed, times their elements.
double training_cost(const RowsView& rows, std::size_t clusters, const KMeansOptions& options);

KMeans train(const Context& context, const RowsView& rows, std::size_t clusters,
             const KMeansOptions& options);

}  // namespace nearwise::cluster

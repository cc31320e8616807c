// Lloyd's iterations. The caller has checked the rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/progress.h"
#include "nearwise/context.h"
#include "nearwise/kmeans.h"
#include "nearwise/matrix.h"

namespace nearwise::cluster {

// Minimum budget in bytes.
std::uint64_t training_bytes(const Context& context, const RowsView& rows, std::size_t clusters,
                             const KMeansOptions& options);

// progress counts pairs of rows and centroids.
KMeans train(const Context& context, const RowsView& rows, std::size_t clusters, const KMeansOptions& options,
             ProgressMeter& progress);

}  // namespace nearwise::cluster

// k-means in two levels, for very many clusters.
#pragma once

#include <cstddef>

#include "nearwise/context.h"
#include "nearwise/kmeans.h"
#include "nearwise/matrix.h"

namespace nearwise::cluster {

// The caller has checked the arguments.
KMeans train_hierarchy(const Context& context, const RowsView& rows, std::size_t clusters,
                       const KMeansOptions& options);

}  // namespace nearwise::cluster

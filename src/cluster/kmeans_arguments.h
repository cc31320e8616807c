// What every training of centroids asks of its arguments.
#pragma once

#include <cstddef>

#include "nearwise/context.h"
#include "nearwise/kmeans.h"
#include "nearwise/matrix.h"

namespace nearwise::cluster {

// Throws Error(invalid_argument) that names the operation; whether rows are finite is not looked at.
void check_arguments(const char* operation, const Context& context, const RowsView& rows,
                     std::size_t clusters, const KMeansOptions& options);

}  // namespace nearwise::cluster

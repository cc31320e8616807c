// Argument checks shared by all k-means trainings.
#pragma once

#include <cstddef>

#include "nearwise/context.h"
#include "nearwise/kmeans.h"
#include "nearwise/matrix.h"

namespace nearwise::cluster {

// Throws Error(invalid_argument) naming the operation. Does not check for NaN.
void check_arguments(const char* operation, const Context& context, const RowsView& rows,
                     std::size_t clusters, const KMeansOptions& options);

}  // namespace nearwise::cluster

// Search results.
#pragma once

#include "nearwise/export.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

// [queries, k], best first, ties by lower id. An id is the row number in the base, or in an Ivf the id the
// vector was added under.
struct Neighbors {
  Matrix<Id> ids;
  Matrix<float> distances;
};

}  // namespace nearwise

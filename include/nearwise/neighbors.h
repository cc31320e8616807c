// Search results.
#pragma once

#include "nearwise/export.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

// [queries, k], best first, ties by lower id. An id is the row number in the base, or for an Ivf or
// GraphIndex the id that the vector was added with. Rows with fewer than k results end in no_id.
struct Neighbors {
  Matrix<Id> ids;
  Matrix<float> distances;
};

}  // namespace nearwise

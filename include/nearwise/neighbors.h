// The answer of every search.
#pragma once

#include "nearwise/export.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

// [queries, k], best first, the lower id first in a tie. An id is the row number in the base.
struct Neighbors {
  Matrix<Id> ids;
  Matrix<float> distances;
};

}  // namespace nearwise

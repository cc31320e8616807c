// Exhaustive search in additive codes. The caller has checked the arguments.
#pragma once

#include <cstddef>
#include <span>

#include "backend/ops.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace nearwise::quantize {

struct AdditiveSearch {
  AdditiveCodebooks codebooks;
  std::span<const float> norms;  // [256]
  RowsView queries;
  MatrixView<const std::uint8_t> codes;
  std::size_t k = 1;
  Metric metric = Metric::sqeuclidean;  // or inner_product
};

// `operation`: the caller's name in messages.
Neighbors search_additive_codes(const char* operation, const Context& context, const AdditiveSearch& search);

}  // namespace nearwise::quantize

// From neighbours found per sampled query to a recall and its interval: shared by graphs, plans and indexes.
#pragma once

#include <cstddef>
#include <span>

#include "nearwise/recall_estimate.h"

namespace nearwise {

// found: how many of its `k` exact neighbours each sampled query has. population: the queries sampled from; a
// sample of all of them has an interval of length 0.
RecallEstimate estimate_recall(std::span<const std::size_t> found, std::size_t k, std::size_t population);

}  // namespace nearwise

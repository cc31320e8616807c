// Cells in an order in which near ones are together, so that any part of it shares few rows with the rest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nearwise/matrix.h"

namespace nearwise::plan {

// Halved again and again across their longest axis, by mass. mass [cells]: the members that each will have, or in proportion.
std::vector<std::uint32_t> order_cells(MatrixView<const float> centroids,
                                       std::span<const std::uint32_t> mass);

// Where each of `groups` parts of like mass ends, in the order. Some may be empty.
std::vector<std::uint64_t> cut_order(std::span<const std::uint32_t> order,
                                     std::span<const std::uint32_t> mass, std::size_t groups);

}  // namespace nearwise::plan

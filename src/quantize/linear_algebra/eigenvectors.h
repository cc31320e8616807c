// Eigenvalues and eigenvectors of a symmetric matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nearwise/context.h"

namespace nearwise::quantize {

// Working memory on the budget.
std::uint64_t eigenvectors_bytes(std::size_t n);

// In place: a finite symmetric matrix [n, n] becomes its eigenvectors, one per row, by descending eigenvalue;
// the element of largest magnitude, the first of several, is positive. values: [n] out. Errors are relative
// to the largest eigenvalue. The result does not depend on threads or the instruction set.
void eigenvectors(const Context& context, std::span<double> matrix, std::span<double> values);

}  // namespace nearwise::quantize

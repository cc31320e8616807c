// The orthogonal polar factor of a square matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nearwise/context.h"

namespace nearwise::quantize {

// Working memory on the budget.
std::uint64_t nearest_orthogonal_bytes(std::size_t n);

// In place: a finite matrix [n, n] with singular value decomposition U S V' becomes U V', the orthogonal
// matrix Q that maximises trace(Q' matrix). If singular values are zero, one of several; for a zero matrix,
// the identity. The result does not depend on threads or the instruction set. False, and the matrix
// unchanged, if rounding errors keep it from converging, as with products of denormal numbers.
[[nodiscard]] bool nearest_orthogonal(const Context& context, std::span<double> matrix, std::size_t n);

}  // namespace nearwise::quantize

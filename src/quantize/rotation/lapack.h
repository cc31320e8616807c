// The decompositions that rotations need, and the equations that additive codebooks solve, from the LAPACK of the BLAS that
// this build is linked with. Its results depend on the library and the CPU it finds, not on the number of threads: it is held
// to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/memory.h"

namespace nearwise::quantize {

// The largest matrices they take, [n, n]: beyond, LAPACK's 32-bit sizes of working memory overflow.
inline constexpr std::size_t most_lapack_dim = 15000;

// Working memory on the budget.
std::uint64_t eigenvectors_bytes(std::size_t n);
std::uint64_t nearest_orthogonal_bytes(std::size_t n);

// In place: a symmetric matrix becomes its eigenvectors, one per row, by rising eigenvalue.
void eigenvectors(MemoryBudget& budget, std::span<double> matrix, std::span<double> values);

// In place: a matrix U S V' becomes U V', the orthogonal matrix Q with the largest sum of products with it.
void nearest_orthogonal(MemoryBudget& budget, std::span<double> matrix, std::size_t n);

// Solves matrix * x = right for several right sides, one per row of `right`, in place. The matrix is positive definite; only
// its elements (i, j) with j <= i are read, and they are overwritten.
void solve_positive(std::span<double> matrix, std::size_t n, std::span<double> right);

}  // namespace nearwise::quantize

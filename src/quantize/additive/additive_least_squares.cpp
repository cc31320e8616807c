#include "quantize/additive/additive_least_squares.h"

#include <algorithm>

#include "backend/context_state.h"
#include "core/checked.h"
#include "quantize/rotation/lapack.h"

namespace nearwise::quantize {
namespace {

constexpr std::size_t codewords = 256;

// Added to the diagonal, as a share of the rows that a codeword has on average. A vector may be moved from one codebook to
// another without changing any sum, so without it there is no single solution. With too little of it errors are larger:
// docs/algorithms/additive-quantization.md has figures. Why was not looked into; perhaps codewords grow against each other.
constexpr double regularisation_share = 0.02;

// Rows between two looks at the cancellation flag.
constexpr std::size_t check_rows = 4096;

}  // namespace

AdditiveLeastSquares::AdditiveLeastSquares(const Context& context, std::size_t codebooks, std::size_t dim)
    : context_(context),
      codebooks_(codebooks),
      dim_(dim),
      matrix_(*context.state().budget, size() * size()),
      sums_(*context.state().budget, size() * dim),
      sides_(*context.state().budget, size() * dim) {}

std::uint64_t AdditiveLeastSquares::bytes(std::size_t codebooks, std::size_t dim) {
  const std::size_t size = codebooks * codewords;
  return buffer_bytes(size * size, sizeof(double)) +
         2 * buffer_bytes(checked_multiply(size, dim, "additive quantizer"), sizeof(double));
}

// A task has the rows of the matrix that belong to one codebook.
void AdditiveLeastSquares::count_pairs(const MatrixView<const std::uint8_t>& codes) {
  const Context::State& state = context_.state();
  const double regularisation = regularisation_share * static_cast<double>(codes.rows()) / codewords;
  state.threads->for_each(codebooks_, [&](std::size_t book) {
    double* const own = matrix_.data() + book * codewords * size();
    std::fill_n(own, codewords * size(), 0.0);
    for (std::size_t row = 0; row < codes.rows(); ++row) {
      if (row % check_rows == 0) state.cancel.check();
      const auto code = codes.row(row);
      for (std::size_t other = 0; other <= book; ++other)
        own[code[book] * size() + other * codewords + code[other]] += 1;
    }
    for (std::size_t codeword = 0; codeword < codewords; ++codeword)
      own[codeword * size() + book * codewords + codeword] += regularisation;
  });
}

void AdditiveLeastSquares::add_rows(const MatrixView<const float>& rows,
                                    const MatrixView<const std::uint8_t>& codes) {
  const Context::State& state = context_.state();
  state.threads->for_each(codebooks_, [&](std::size_t book) {
    double* const own = sums_.data() + book * codewords * dim_;
    std::fill_n(own, codewords * dim_, 0.0);
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      if (row % check_rows == 0) state.cancel.check();
      double* const sum = own + codes(row, book) * dim_;
      const float* const values = rows.row(row).data();
      for (std::size_t i = 0; i < dim_; ++i) sum[i] += static_cast<double>(values[i]);
    }
  });
  for (std::size_t codeword = 0; codeword < size(); ++codeword)
    for (std::size_t i = 0; i < dim_; ++i) sides_[i * size() + codeword] = sums_[codeword * dim_ + i];
}

void AdditiveLeastSquares::fit(const MatrixView<const float>& rows,
                               const MatrixView<const std::uint8_t>& codes, std::span<float> codewords_out) {
  count_pairs(codes);
  add_rows(rows, codes);
  context_.state().cancel.check();
  solve_positive(matrix_.span(), size(), sides_.span());
  for (std::size_t codeword = 0; codeword < size(); ++codeword)
    for (std::size_t i = 0; i < dim_; ++i)
      codewords_out[codeword * dim_ + i] = static_cast<float>(sides_[i * size() + codeword]);
}

}  // namespace nearwise::quantize

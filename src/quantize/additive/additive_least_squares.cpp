#include "quantize/additive/additive_least_squares.h"

#include <algorithm>

#include "backend/context_state.h"
#include "core/checked.h"
#include "quantize/linear_algebra/solve_positive.h"

namespace nearwise::quantize {
namespace {

constexpr std::size_t codewords = 256;
constexpr std::size_t book_blocks = codewords / StripMatrix::width;  // row blocks of a codebook

// Added to the diagonal, relative to the mean number of rows per codeword. Adding a vector to one codebook
// and subtracting it from another changes no sum, so the system is singular without it. Smaller values give
// larger errors (docs/algorithms/additive-quantization.md), for reasons not investigated.
constexpr double regularisation_share = 0.02;

// Rows between checks of the cancellation flag.
constexpr std::size_t check_rows = 4096;

}  // namespace

AdditiveLeastSquares::AdditiveLeastSquares(const Context& context, std::size_t codebooks, std::size_t dim)
    : context_(context),
      codebooks_(codebooks),
      dim_(dim),
      matrix_(*context.state().budget, codebooks * codewords, codebooks * codewords),
      sums_(*context.state().budget, codebooks * codewords, dim) {}

std::uint64_t AdditiveLeastSquares::bytes(std::size_t codebooks, std::size_t dim) {
  const std::size_t size = codebooks * codewords;
  return StripMatrix::bytes(size, size) + StripMatrix::bytes(size, dim);
}

// One task per codebook: its rows of the matrix, from the diagonal on.
void AdditiveLeastSquares::count_pairs(const MatrixView<const std::uint8_t>& codes) {
  const Context::State& state = context_.state();
  const double regularisation = regularisation_share * static_cast<double>(codes.rows()) / codewords;
  state.threads->for_each(codebooks_, [&](std::size_t book) {
    for (std::size_t strip = book * book_blocks; strip < matrix_.strips(); ++strip)
      std::fill_n(matrix_.block(book * book_blocks, strip), codewords * StripMatrix::width, 0.0);
    for (std::size_t row = 0; row < codes.rows(); ++row) {
      if (row % check_rows == 0) state.cancel.check();
      const auto code = codes.row(row);
      for (std::size_t other = book; other < codebooks_; ++other)
        matrix_(book * codewords + code[book], other * codewords + code[other]) += 1;
    }
    for (std::size_t codeword = book * codewords; codeword < (book + 1) * codewords; ++codeword)
      matrix_(codeword, codeword) += regularisation;
  });
}

// One task per codebook.
void AdditiveLeastSquares::add_rows(const MatrixView<const float>& rows,
                                    const MatrixView<const std::uint8_t>& codes) {
  const Context::State& state = context_.state();
  state.threads->for_each(codebooks_, [&](std::size_t book) {
    for (std::size_t strip = 0; strip < sums_.strips(); ++strip)
      std::fill_n(sums_.block(book * book_blocks, strip), codewords * StripMatrix::width, 0.0);
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      if (row % check_rows == 0) state.cancel.check();
      const std::size_t codeword = book * codewords + codes(row, book);
      const float* const values = rows.row(row).data();
      for (std::size_t first = 0; first < dim_; first += StripMatrix::width) {
        double* const sum = &sums_(codeword, first);
        for (std::size_t i = 0; i < std::min(StripMatrix::width, dim_ - first); ++i)
          sum[i] += static_cast<double>(values[first + i]);
      }
    }
  });
}

void AdditiveLeastSquares::fit(const MatrixView<const float>& rows,
                               const MatrixView<const std::uint8_t>& codes, std::span<float> codewords_out) {
  count_pairs(codes);
  add_rows(rows, codes);
  solve_positive(context_, matrix_, sums_);
  for (std::size_t codeword = 0; codeword < codebooks_ * codewords; ++codeword)
    for (std::size_t i = 0; i < dim_; ++i)
      codewords_out[codeword * dim_ + i] = static_cast<float>(sums_(codeword, i));
}

}  // namespace nearwise::quantize

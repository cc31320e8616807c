#include "quantize/additive/additive_coding.h"

#include <algorithm>
#include <limits>

#include "backend/dispatch.h"
#include "core/checked.h"

namespace nearwise::quantize {
namespace {

constexpr std::size_t task_rows = 1024;

double element_of_sum(const AdditiveCodebooks& codebooks, std::span<const std::uint8_t> code, std::size_t i) {
  double sum = 0;
  for (std::size_t book = 0; book < codebooks.count; ++book)
    sum += static_cast<double>(codebooks.codeword(book, code[book])[i]);
  return sum;
}

}  // namespace

std::uint64_t additive_encode_bytes(const char* operation, const Context& context,
                                    const AdditiveCodebooks& codebooks) {
  const auto stream = open_stream(context);
  return dispatch(&Ops::additive_codes_bytes, operation, *stream, codebooks);
}

double additive_encode_cost(std::size_t rows, std::size_t dim, std::size_t codebooks,
                            std::size_t iterations) {
  // Products with all codewords, then the code search: in each iteration a table entry per pair of codebooks
  // and codeword, for about two passes.
  constexpr double per_entry = 8;
  constexpr double passes = 2;
  const auto books = static_cast<double>(codebooks);
  const double products = books * AdditiveCodebooks::codebook_size * static_cast<double>(dim);
  const double entries =
      books * books * AdditiveCodebooks::codebook_size * passes * static_cast<double>(iterations);
  return static_cast<double>(rows) * (products + per_entry * entries);
}

void encode_additive_rows(const char* operation, const Context& context, const RowsView& rows,
                          const AdditiveCodebooks& codebooks, const AdditiveEncodeOptions& options,
                          const MatrixView<std::uint8_t>& codes, ProgressMeter* progress) {
  if (rows.rows() == 0) return;
  const auto stream = open_stream(context);
  dispatch(&Ops::additive_codes, operation, *stream,
           AdditiveCodesArgs{.rows = rows,
                             .codebooks = codebooks,
                             .iterations = options.iterations,
                             .rounds = options.passes,
                             .perturbed = std::min(options.perturbed, codebooks.count),
                             .seed = context.seed(),
                             .codes = codes,
                             .progress = progress});
}

Decoder decoder_of(const AdditiveCodebooks& codebooks) {
  return {codebooks.dim, [codebooks](std::span<const std::uint8_t> code, float* row) {
            for (std::size_t i = 0; i < codebooks.dim; ++i)
              row[i] = static_cast<float>(element_of_sum(codebooks, code, i));
          }};
}

void additive_norms(const Context& context, const AdditiveCodebooks& codebooks,
                    const MatrixView<const std::uint8_t>& codes, std::span<float> out) {
  const Context::State& state = context.state();
  state.threads->for_each(divide_up(codes.rows(), task_rows), [&](std::size_t task) {
    state.cancel.check();
    const std::size_t end = std::min(codes.rows(), (task + 1) * task_rows);
    for (std::size_t row = task * task_rows; row < end; ++row) {
      double sum = 0;
      for (std::size_t i = 0; i < codebooks.dim; ++i) {
        const double element = element_of_sum(codebooks, codes.row(row), i);
        sum += element * element;
      }
      out[row] = static_cast<float>(std::min(sum, static_cast<double>(std::numeric_limits<float>::max())));
    }
  });
}

}  // namespace nearwise::quantize

#include "quantize/additive_coding.h"

#include <algorithm>
#include <limits>

#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/convert.h"
#include "core/memory.h"

namespace nearwise::quantize {
namespace {

// Rows of a task, and of one sum of errors: the sums are added in their order.
constexpr std::size_t task_rows = 1024;

double element_of_sum(const AdditiveCodebooks& codebooks, std::span<const std::uint8_t> code, std::size_t i) {
  double sum = 0;
  for (std::size_t book = 0; book < codebooks.count; ++book)
    sum += static_cast<double>(codebooks.word(book, code[book])[i]);
  return sum;
}

// Calls work(row, code) for the rows of every task.
template <typename Work>
void for_each_code(const Context& context, const MatrixView<const std::uint8_t>& codes,
                   ProgressMeter* progress, const Work& work) {
  const Context::State& state = context.state();
  state.threads->for_each(divide_up(codes.rows(), task_rows), [&](std::size_t task) {
    state.cancel.check();
    const std::size_t end = std::min(codes.rows(), (task + 1) * task_rows);
    for (std::size_t row = task * task_rows; row < end; ++row) work(row, codes.row(row));
    if (progress != nullptr) progress->add(end - task * task_rows);
  });
}

double squared_distance(const RowsView& rows, std::size_t row, const AdditiveCodebooks& codebooks,
                        std::span<const std::uint8_t> code) {
  double sum = 0;
  visit_element_type(rows.type(), [&](auto tag) {
    for (std::size_t i = 0; i < rows.dim(); ++i) {
      // Of the decoded row, which is in f32.
      const auto decoded = static_cast<float>(element_of_sum(codebooks, code, i));
      const double difference =
          static_cast<double>(element<decltype(tag)>(rows.row(row), i)) - static_cast<double>(decoded);
      sum += difference * difference;
    }
  });
  return sum;
}

}  // namespace

std::uint64_t additive_encode_bytes(const char* operation, const Context& context,
                                    const AdditiveCodebooks& codebooks) {
  const auto stream = open_stream(context);
  return dispatch(&Ops::additive_codes_bytes, operation, *stream, codebooks);
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

void decode_additive_codes(const Context& context, const AdditiveCodebooks& codebooks,
                           const MatrixView<const std::uint8_t>& codes, const MatrixView<float>& rows,
                           ProgressMeter* progress) {
  for_each_code(context, codes, progress, [&](std::size_t row, std::span<const std::uint8_t> code) {
    for (std::size_t i = 0; i < codebooks.dim; ++i)
      rows(row, i) = static_cast<float>(element_of_sum(codebooks, code, i));
  });
}

void additive_norms(const Context& context, const AdditiveCodebooks& codebooks,
                    const MatrixView<const std::uint8_t>& codes, std::span<float> out) {
  for_each_code(context, codes, nullptr, [&](std::size_t row, std::span<const std::uint8_t> code) {
    double sum = 0;
    for (std::size_t i = 0; i < codebooks.dim; ++i) {
      const double element = element_of_sum(codebooks, code, i);
      sum += element * element;
    }
    out[row] = static_cast<float>(std::min(sum, static_cast<double>(std::numeric_limits<float>::max())));
  });
}

std::uint64_t additive_error_bytes(const RowsView& rows) {
  return buffer_bytes(divide_up(rows.rows(), task_rows), sizeof(double));
}

double additive_error(const Context& context, const RowsView& rows, const AdditiveCodebooks& codebooks,
                      const MatrixView<const std::uint8_t>& codes) {
  const Context::State& state = context.state();
  const std::size_t tasks = divide_up(rows.rows(), task_rows);
  Buffer<double> sums(*state.budget, tasks);
  state.threads->for_each(tasks, [&](std::size_t task) {
    state.cancel.check();
    sums[task] = 0;
    const std::size_t end = std::min(rows.rows(), (task + 1) * task_rows);
    for (std::size_t row = task * task_rows; row < end; ++row)
      sums[task] += squared_distance(rows, row, codebooks, codes.row(row));
  });
  double sum = 0;
  for (std::size_t task = 0; task < tasks; ++task) sum += sums[task];
  return sum;
}

}  // namespace nearwise::quantize

#include "plan/index/index_shape.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "cluster/training.h"
#include "core/check.h"
#include "core/checked.h"
#include "index/defaults.h"
#include "index/ivf_state.h"
#include "nearwise/additive_quantizer.h"
#include "ops/memory_limit.h"
#include "quantize/additive/additive_training.h"
#include "quantize/product/train_codebooks.h"
#include "quantize/training_rows.h"

namespace nearwise::plan {
namespace {

// Training rows per list, whatever the limit.
constexpr std::size_t min_rows_per_list = 32;
// Of a product quantizer, whatever the limit (index/ivf_train.cpp).
constexpr std::size_t rows_per_codeword = 256;
// Working memory of a search beyond its operands, in bytes.
constexpr std::uint64_t working_bytes = std::uint64_t{16} << 20;
// Bounds of the block size: the file overhead of small blocks, and the work lost when a task is interrupted.
constexpr std::size_t min_block_rows = 4096;
constexpr std::size_t max_block_rows = 4'000'000;

IndexShape index_shape(const IvfPqOptions& options, const RowsView&) {
  return {options.metric, options.lists, options.code_bytes, options.bits};
}
IndexShape index_shape(const IvfFlatOptions& options, const RowsView& rows) {
  return {options.metric, options.lists, rows.dim() * element_size(rows.type()), 0};
}
IndexShape index_shape(const IvfLsqOptions& options, const RowsView&) {
  return {options.metric, options.lists, options.code_bytes, 0, true};
}

std::uint64_t codeword_bytes(const Context& context, const RowsView& left, const IndexShape& shape) {
  if (shape.is_additive)
    return quantize::additive_training_bytes(
        context, left, {.operation = "plan_index", .codebooks = shape.code_bytes, .rounds = 1});
  const std::size_t parts = std::min(left.dim(), shape.code_bytes * (8 / shape.bits));
  const quantize::CodebookTraining training = {
      .shape = {left.dim(), parts, static_cast<unsigned>(shape.bits), {}}, .iterations = 1, .initial = {}};
  return quantize::training_bytes(context, left, training);
}

std::uint64_t training_bytes(const Context& context, const RowsView& rows, const IndexShape& shape,
                             std::size_t rows_per_list) {
  const std::size_t most = checked_multiply(shape.lists, rows_per_list, "plan_index: lists * rows_per_list");
  const std::uint64_t of_lists =
      quantize::TrainingRows::bytes(rows, most) +
      cluster::training_bytes(context, quantize::TrainingRows::shape(rows, most), shape.lists, {});
  std::uint64_t of_codes = 0;
  if (shape.bits != 0 || shape.is_additive) {
    const std::size_t sampled =
        std::min(rows.rows(), rows_per_codeword << (shape.is_additive ? 8 : shape.bits));
    const RowsView left(rows.data(), ElementType::f32, sampled, rows.dim(), rows.dim() * sizeof(float));
    of_codes = quantize::TrainingRows::bytes(rows, sampled) +
               sampled * (rows.dim() * sizeof(float) + sizeof(Id) + sizeof(float)) +
               codeword_bytes(context, left, shape);
  }
  return shape.lists * rows.dim() * sizeof(float) + std::max(of_lists, of_codes) + working_bytes;
}

// Bytes per added row: list number, two copies of its code and of its id.
std::uint64_t bytes_of_added_row(const IndexShape& shape) {
  return sizeof(std::uint32_t) + 2 * shape.code_bytes + 2 * sizeof(Id);
}

// Bytes of a batch of added rows: residuals, codes and nearest lists.
std::uint64_t batch_bytes(std::size_t dim, std::size_t code_bytes) {
  return index::added_batch_rows * (dim * sizeof(float) + code_bytes + sizeof(Id) + sizeof(float));
}

// Upper bound of the bytes per training row: the row, its widest packed form, and bookkeeping. It is the same
// on every machine, unlike what a backend reports.
std::uint64_t bytes_of_training_row(const RowsView& rows) {
  return rows.dim() * (element_size(rows.type()) + sizeof(float)) + 64;
}

template <typename Options>
IndexShape settle_options(const Context& context, const RowsView& rows, Options& options) {
  if (options.lists == 0) options.lists = index::default_lists(rows.rows());
  require(options.lists <= rows.rows(),
          "plan_index: at most as many lists as rows expected, given {} lists and {} rows", options.lists,
          rows.rows());
  if constexpr (std::is_same_v<Options, IvfPqOptions>) {
    if (options.code_bytes == 0) options.code_bytes = index::default_code_bytes(rows.dim());
    require(options.bits == 4 || options.bits == 8, "plan_index: codes of 4 or 8 bits expected, given {}",
            options.bits);
    require(options.code_bytes <= rows.dim(),
            "plan_index: codes of at most {} bytes expected, one per dimension, given {}", rows.dim(),
            options.code_bytes);
  }
  if constexpr (std::is_same_v<Options, IvfLsqOptions>)
    require(options.code_bytes >= 1 && options.code_bytes <= AdditiveQuantizer::most_codebooks,
            "plan_index: codes of 1 to {} bytes expected, given {}", AdditiveQuantizer::most_codebooks,
            options.code_bytes);
  const IndexShape shape = index_shape(options, rows);
  const std::size_t most = divide_up(rows.rows(), options.lists);
  const std::size_t wanted = options.rows_per_list == 0 ? most : std::min(most, options.rows_per_list);
  const std::size_t fitting = context.memory_limit() / 2 / bytes_of_training_row(rows) / options.lists;
  options.rows_per_list = std::min(wanted, std::max(min_rows_per_list, fitting));
  check_memory("plan_index", context, training_bytes(context, rows, shape, options.rows_per_list));
  return shape;
}

}  // namespace

IndexShape settle(const Context& context, const RowsView& rows, IndexPlanOptions& options) {
  return std::visit([&](auto& own) { return settle_options(context, rows, own); }, options.training);
}

std::size_t block_rows(const Context& context, const RowsView& rows, const IndexShape& shape) {
  const std::uint64_t fixed =
      shape.lists * rows.dim() * sizeof(float) + batch_bytes(rows.dim(), shape.code_bytes) + working_bytes;
  const std::uint64_t row = bytes_of_added_row(shape);
  check_memory("plan_index", context, fixed + min_block_rows * row);
  const std::uint64_t fitting = (context.memory_limit() - fixed) / 2 / row;
  return std::min<std::uint64_t>(rows.rows(),
                                 std::clamp<std::uint64_t>(fitting, min_block_rows, max_block_rows));
}

}  // namespace nearwise::plan

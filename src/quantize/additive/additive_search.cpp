// For each tile of queries: tables, distances to all codes, and k-selection. A distance depends on its query
// and code alone, so results do not depend on the tile size.
#include "quantize/additive/additive_search.h"

#include <algorithm>
#include <cstdint>

#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/convert.h"
#include "core/distance.h"
#include "core/memory.h"
#include "core/progress.h"
#include "ops/finite_rows.h"
#include "ops/memory_limit.h"

namespace nearwise::quantize {
namespace {

constexpr std::size_t codewords = AdditiveCodebooks::codebook_size;
// Queries per tile: enough for all threads, fewer if there are many codes.
constexpr std::size_t most_tile = 256;
constexpr std::uint64_t usual_bytes = std::uint64_t{64} << 20;

double squared_length(const RowsView& rows, std::size_t row) {
  double sum = 0;
  visit_element_type(rows.type(), [&](auto tag) {
    for (std::size_t i = 0; i < rows.dim(); ++i) {
      const auto value = static_cast<double>(element<decltype(tag)>(rows.row(row), i));
      sum += value * value;
    }
  });
  return sum;
}

class CodeSearch {
 public:
  CodeSearch(const char* operation, const Context& context, const AdditiveSearch& search)
      : operation_(operation), context_(context), search_(search), stream_(open_stream(context)) {}

  Neighbors run() {
    const Context::State& state = context_.state();
    const std::size_t queries = search_.queries.rows();
    const std::uint64_t result_bytes = checked_multiply(checked_multiply(queries, search_.k, operation_),
                                                        sizeof(Id) + sizeof(float), operation_);
    const std::uint64_t least = result_bytes + columns_bytes() + tile_bytes(1);
    check_memory(operation_, context_, least);
    check_finite(operation_, context_, search_.queries, 0, "query");
    const Reservation reservation(*state.budget, result_bytes);
    Neighbors found{Matrix<Id>(queries, search_.k), Matrix<float>(queries, search_.k)};
    pad(found);
    if (queries == 0 || codes() == 0) return found;
    Buffer<float> columns(*state.budget, dim() * entries());
    fill_columns(columns.data());
    const std::size_t tile = tile_queries();
    Buffer<float> tables(*state.budget, tile * table_size());
    Buffer<float> sums(*state.budget, checked_multiply(tile, codes(), operation_));
    ProgressMeter progress(state.options.progress, state.clock, operation_, std::uint64_t{queries} * codes());
    for (std::size_t first = 0; first < queries; first += tile) {
      state.cancel.check();
      const std::size_t count = std::min(tile, queries - first);
      const MatrixView<float> tile_tables(tables.data(), count, table_size());
      fill_tables(search_.queries.slice(first, count), {columns.data(), dim(), entries()}, tile_tables);
      const MatrixView<float> tile_sums(sums.data(), count, codes());
      dispatch(&Ops::code_sums, operation_, *stream_, CodeSumsArgs{tile_tables, search_.codes, tile_sums});
      dispatch(&Ops::select_k, operation_, *stream_,
               SelectKArgs{.values = tile_sums,
                           .column_ids = {},
                           .order = is_product() ? Order::largest : Order::smallest,
                           .k = answers(),
                           .ids = found.ids.view().slice(first, count),
                           .best = found.distances.view().slice(first, count),
                           .progress = &progress});
    }
    progress.finish();
    return found;
  }

 private:
  bool is_product() const { return search_.metric == Metric::inner_product; }
  std::size_t dim() const { return search_.codebooks.dim; }
  std::size_t codes() const { return search_.codes.rows(); }
  std::size_t answers() const { return std::min(search_.k, codes()); }
  std::size_t entries() const { return search_.codebooks.count * codewords; }  // without those of the norm
  std::size_t table_size() const { return entries() + codewords; }

  std::uint64_t columns_bytes() const {
    return buffer_bytes(dim() * entries(), sizeof(float)) + buffer_bytes(entries(), sizeof(double));
  }
  std::uint64_t tile_bytes(std::size_t queries) const {
    if (codes() == 0) return 0;
    return buffer_bytes(queries * table_size(), sizeof(float)) +
           buffer_bytes(checked_multiply(queries, codes(), operation_), sizeof(float)) +
           std::max(dispatch(&Ops::rotate_bytes, operation_, *stream_, dim(), entries()),
                    dispatch(&Ops::select_k_bytes, operation_, *stream_,
                             SelectKShape{queries, codes(), answers()}));
  }
  std::size_t tile_queries() const {
    const std::uint64_t available = std::min(usual_bytes, context_.state().budget->available());
    std::size_t tile = std::min(most_tile, search_.queries.rows());
    while (tile > 1 && tile_bytes(tile) > available) tile = divide_up(tile, std::size_t{2});
    return tile;
  }

  void pad(Neighbors& found) const {
    std::fill_n(found.ids.data(), found.ids.rows() * found.ids.cols(), no_id);
    std::fill_n(found.distances.data(), found.ids.rows() * found.ids.cols(),
                padding_distance(search_.metric));
  }

  // One codeword per column, scaled by the factor of its inner products.
  void fill_columns(float* columns) const {
    const float factor = is_product() ? 1.0F : -2.0F;
    for (std::size_t codeword = 0; codeword < entries(); ++codeword)
      for (std::size_t i = 0; i < dim(); ++i)
        columns[i * entries() + codeword] = factor * search_.codebooks.codewords[codeword * dim() + i];
  }

  void fill_tables(const RowsView& queries, const MatrixView<const float>& columns,
                   const MatrixView<float>& tables) const {
    Buffer<double> offset(*context_.state().budget, entries());
    std::fill_n(offset.data(), offset.size(), 0.0);
    dispatch(&Ops::rotate, operation_, *stream_,
             RotateArgs{.rows = queries,
                        .columns = columns,
                        .offset = offset.span(),
                        .rotated = {tables.data(), queries.rows(), entries(), table_size()},
                        .progress = nullptr});
    for (std::size_t query = 0; query < queries.rows(); ++query) {
      const auto lengths = tables.row(query).subspan(entries());
      const double own = squared_length(queries, query);
      for (std::size_t level = 0; level < codewords; ++level)
        lengths[level] =
            is_product() ? 0.0F : static_cast<float>(own + static_cast<double>(search_.norms[level]));
    }
  }

  const char* const operation_;
  const Context& context_;
  const AdditiveSearch& search_;
  const std::unique_ptr<Stream> stream_;
};

}  // namespace

Neighbors search_additive_codes(const char* operation, const Context& context, const AdditiveSearch& search) {
  return CodeSearch(operation, context, search).run();
}

}  // namespace nearwise::quantize

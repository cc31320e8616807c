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
    check_memory(operation_, context_, result_bytes + working_bytes());
    check_finite(operation_, context_, search_.queries, 0, "query");
    const Reservation reservation(*state.budget, result_bytes);
    Neighbors found{Matrix<Id>(queries, search_.k), Matrix<float>(queries, search_.k)};
    pad(found);
    if (queries == 0 || codes() == 0) return found;
    Buffer<float> columns(*state.budget, dim() * entries());
    fill_columns(columns.data());
    Buffer<double> squares(*state.budget, is_product() ? 0 : queries);
    for (std::size_t query = 0; query < squares.size(); ++query)
      squares[query] = squared_length(search_.queries, query);
    ProgressMeter progress(state.options.progress, state.clock, operation_, std::uint64_t{queries} * codes());
    dispatch(&Ops::additive_search, operation_, *stream_,
             AdditiveSearchArgs{.queries = search_.queries,
                                .columns = {columns.data(), dim(), entries()},
                                .squares = squares.span(),
                                .norms = search_.norms,
                                .codes = search_.codes,
                                .order = is_product() ? Order::largest : Order::smallest,
                                .k = shape().k,
                                .ids = found.ids.view(),
                                .best = found.distances.view(),
                                .progress = &progress});
    progress.finish();
    return found;
  }

 private:
  bool is_product() const { return search_.metric == Metric::inner_product; }
  std::size_t dim() const { return search_.codebooks.dim; }
  std::size_t codes() const { return search_.codes.rows(); }
  std::size_t entries() const { return search_.codebooks.count * codewords; }

  AdditiveSearchShape shape() const {
    return {codes(), dim(), element_size(search_.queries.type()), search_.codes.cols(),
            std::min(search_.k, codes())};
  }
  std::uint64_t working_bytes() const {
    const std::uint64_t own = buffer_bytes(dim() * entries(), sizeof(float)) +
                              buffer_bytes(is_product() ? 0 : search_.queries.rows(), sizeof(double));
    return codes() == 0 ? own : own + dispatch(&Ops::additive_search_bytes, operation_, *stream_, shape());
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

// Searches under a filter on a CUDA device: those of the CPU, bit for bit.
#include <gtest/gtest.h>

#include <cstdint>
#include <span>

#include "backend/cuda/cuda_test.h"
#include "nearwise/exact.h"
#include "nearwise/ivf.h"
#include "support/device_array.h"
#include "support/filter_cases.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::FilterCase;
using support::FilterKind;
using support::same;

constexpr std::size_t base_rows = 150;
constexpr std::size_t query_count = 12;

class CudaFilter : public gpu::CudaTest {
 protected:
  const support::Problem problem_ = support::make_problem(
      {.kind = support::Kind::integers, .rows = base_rows, .queries = query_count, .dim = 6, .seed = 21});
  const Context cuda_ = Context::cuda(0);
};

TEST_F(CudaFilter, ExactSearch) {
  std::uint64_t number = 0;
  for (const FilterKind kind : support::every_filter_kind)
    for (const double density : {0.0, 0.05, 0.6, 1.0}) {
      if (!gpu::is_due(number++)) continue;
      SCOPED_TRACE(fmt::format("{} {}", name(kind), density));
      const FilterCase filter = make_filter(kind, base_rows, query_count, density, 22);
      const oracle::Answer expected =
          support::filtered_answer(problem_.queries, problem_.base, 4, Metric::sqeuclidean, filter.allows);
      EXPECT_TRUE(same(expected, knn(cuda_, problem_.queries, problem_.base, 4, {.filter = filter.filter})));
      EXPECT_TRUE(same(expected, Exact::prepare(cuda_, problem_.base)
                                     .search(cuda_, problem_.queries, 4, {.filter = filter.filter})));
    }
}

TEST_F(CudaFilter, OfRowsOnTheDevice) {
  const support::Rows rows(support::generate(support::Kind::normal, 90, 5, 3), ElementType::f32);
  const std::span<const float> elements(reinterpret_cast<const float*>(rows.view().data()), 90 * 5);
  const support::DeviceArray<float> copy(elements);
  const RowsView base(copy.data(), ElementType::f32, 90, 5, 5 * sizeof(float), cuda_.place());
  const FilterCase filter = make_filter(FilterKind::mask, 90, 7, 0.4, 5);
  const RowsView queries = rows.view().slice(0, 7);
  const oracle::Answer expected =
      support::filtered_answer(queries, rows, 3, Metric::sqeuclidean, filter.allows);
  EXPECT_TRUE(same(expected, knn(cuda_, queries, base, 3, {.filter = filter.filter})));
}

TEST_F(CudaFilter, InvertedFiles) {
  const Context cpu = Context::cpu({.threads = 1});
  const support::Problem large = support::make_problem(
      {.kind = support::Kind::normal, .rows = 400, .queries = query_count, .dim = 6, .seed = 23});
  std::uint64_t number = 0;
  for (const Encoding& encoding : {Encoding(Flat{}), Encoding(Pq{.code_bytes = 2})}) {
    const Ivf index = Ivf::build(cpu, large.base, {.lists = 6, .encoding = encoding}, std::nullopt);
    for (const FilterKind kind : support::every_filter_kind) {
      if (!gpu::is_due(number++)) continue;
      SCOPED_TRACE(name(kind));
      const FilterCase filter = make_filter(kind, 400, query_count, 0.5, 24);
      for (const IvfSearchOptions& options :
           {IvfSearchOptions{.probes = 3, .codes_only = true, .filter = filter.filter},
            IvfSearchOptions{.probes = 3, .candidates = 20, .filter = filter.filter},
            IvfSearchOptions{.filter = filter.filter, .scanned = 400}})
        EXPECT_TRUE(same(support::as_expected(index.search(cpu, large.queries, 5, options)),
                         index.search(cuda_, large.queries, 5, options)));
    }
  }
}

}  // namespace
}  // namespace nearwise

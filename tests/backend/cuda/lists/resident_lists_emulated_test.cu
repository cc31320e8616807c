// What a search in lists that a device keeps copies, and what happens if its calls fail.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cuda/failing_calls.h"
#include "cuda_emulation/call_counts.h"
#include "nearwise/ivf.h"
#include "support/graph_cases.h"
#include "support/ivf_cases.h"

namespace nearwise {
namespace {

using cuda_emulation::CallCounts;
using support::Problem;
using support::same_bytes;

constexpr std::uint64_t most_more_bytes = 4096;

template <typename Run>
CallCounts counts_during(const Run& run) {
  cuda_emulation::reset_call_counts();
  run();
  return cuda_emulation::call_counts();
}

std::uint64_t bytes_to_device(const CallCounts& counts) {
  return counts.pageable_to_device + counts.pinned_to_device;
}

std::uint64_t bytes_to_host(const CallCounts& counts) {
  return counts.device_to_pageable + counts.device_to_pinned;
}

Problem normal_rows(std::size_t rows, std::size_t queries, std::size_t dim, ElementType type) {
  return support::make_problem({.kind = support::Kind::normal,
                                .rows = rows,
                                .queries = queries,
                                .dim = dim,
                                .base_type = type,
                                .query_type = type,
                                .base_layout = support::Layout::dense,
                                .query_layout = support::Layout::dense,
                                .seed = rows});
}

struct Encoded {
  const char* name;
  Encoding encoding;
  ElementType type;
  VectorStorage vectors;
};

class CudaResidentListCounts : public gpu::CudaTest, public testing::WithParamInterface<Encoded> {};
INSTANTIATE_TEST_SUITE_P(
    Encodings, CudaResidentListCounts,
    testing::Values(
        Encoded{"flat", Flat{}, ElementType::f32, VectorStorage::keep},
        Encoded{"flat_u8", Flat{}, ElementType::u8, VectorStorage::keep},
        Encoded{"pq", Pq{.code_bytes = 4, .bits = 4}, ElementType::f32, VectorStorage::keep},
        Encoded{"pq_u8_vectors", Pq{.code_bytes = 4, .bits = 8}, ElementType::f32, VectorStorage::u8},
        Encoded{"pq_alone", Pq{.code_bytes = 4, .bits = 4}, ElementType::f32, VectorStorage::none},
        Encoded{"lsq", Lsq{.code_bytes = 2, .rounds = 1, .train_iterations = 1, .encode_iterations = 1},
                ElementType::f32, VectorStorage::keep}),
    [](const auto& info) { return std::string(info.param.name); });

// The second search of a list of any size: queries, answers and at most 4 KB.
TEST_P(CudaResidentListCounts, ASecondSearchCopiesQueriesAndAnswers) {
  constexpr std::size_t dim = 16;
  const Context& cpu = support::one_thread();
  for (const Metric metric : support::every_metric)
    for (const std::size_t queries : {1UL, 24UL}) {
      if (queries != 1 && metric != Metric::sqeuclidean) continue;
      SCOPED_TRACE(testing::Message() << name(metric) << ", " << queries << " queries");
      constexpr std::size_t k = 10;
      std::vector<std::uint64_t> to_device;
      std::vector<std::uint64_t> to_host;
      for (const std::size_t rows : {400UL, 1200UL}) {
        const Problem problem = normal_rows(rows, queries, dim, GetParam().type);
        const RowsView base = problem.base;
        Ivf index = Ivf::build(cpu, base.slice(0, rows - 100),
                               {.metric = metric,
                                .lists = 8,
                                .iterations = 2,
                                .encoding = GetParam().encoding,
                                .vectors = GetParam().vectors},
                               std::nullopt);
        const Context context = Context::cuda(0);
        const IvfSearchOptions options = {.probes = 3, .candidates = 40};
        const auto search = [&] { return index.search(context, problem.queries, k, options); };
        const std::uint64_t query_bytes = queries * dim * element_size(GetParam().type);
        const std::uint64_t answer_bytes = queries * k * (sizeof(Id) + sizeof(float));
        const auto expect_little = [&](const char* when) {
          Neighbors found{Matrix<Id>(0, 0), Matrix<float>(0, 0)};
          const CallCounts counts = counts_during([&] { found = search(); });
          EXPECT_TRUE(same_bytes(index.search(cpu, problem.queries, k, options), found)) << when;
          EXPECT_LE(bytes_to_device(counts) + bytes_to_host(counts),
                    query_bytes + answer_bytes + most_more_bytes)
              << when << ", " << rows << " rows";
          EXPECT_EQ(bytes_to_device(counts), query_bytes) << when;
          EXPECT_EQ(counts.pageable_to_device, 0U);
          EXPECT_EQ(counts.stream_creations(), 0U);
          EXPECT_EQ(counts.handle_creations(), 0U);
          EXPECT_EQ(counts.pool_growths, 0U);
          EXPECT_LE(counts.synchronisations, 4U);
          to_device.push_back(bytes_to_device(counts));
          to_host.push_back(bytes_to_host(counts));
        };
        index.to(context);
        search();
        expect_little("after to()");
        index.add(cpu, base.slice(rows - 100, 100));
        // The changed lists are copied once.
        EXPECT_GT(bytes_to_device(counts_during(search)), 100 * index.code_bytes());
        expect_little("after add()");
        index.remove(cpu, std::vector<Id>{3, 7, 11});
        search();
        expect_little("after remove()");
        index.to(Context::cpu());
        // As before, lists are copied.
        search();
        EXPECT_GT(bytes_to_device(counts_during(search)), to_device.back() + most_more_bytes / 2);
      }
      EXPECT_EQ(to_device, std::vector<std::uint64_t>(to_device.size(), to_device.front()));
      EXPECT_EQ(to_host, std::vector<std::uint64_t>(to_host.size(), to_host.front()));
    }
}

class CudaResidentListFailures : public gpu::CudaTest, public testing::WithParamInterface<Encoded> {
 protected:
  CudaResidentListFailures() {
    index_.add(support::one_thread(), problem_.base);
    expected_ = index_.search(support::one_thread(), problem_.queries, 3, options_);
  }

  bool right_answer(const Context& context) {
    struct Release {
      ~Release() { index.to(Context::cpu()); }
      Ivf& index;
    };
    const Release release{index_};
    index_.to(context);
    const bool first = same_bytes(expected_, index_.search(context, problem_.queries, 3, options_));
    index_.add(support::one_thread(), RowsView(problem_.base).slice(0, 1), std::vector<Id>{1000});
    index_.remove(support::one_thread(), std::vector<Id>{1000});
    return same_bytes(expected_, index_.search(context, problem_.queries, 3, options_)) && first;
  }

 private:
  const IvfSearchOptions options_ = {.probes = 2, .candidates = 6};
  const Problem problem_ = support::clustered(60, 2, 4, 5);
  Ivf index_ = Ivf::train(support::one_thread(), problem_.base,
                          {.lists = 3, .encoding = GetParam().encoding, .vectors = GetParam().vectors});
  Neighbors expected_{Matrix<Id>(0, 0), Matrix<float>(0, 0)};
};
INSTANTIATE_TEST_SUITE_P(Encodings, CudaResidentListFailures,
                         testing::Values(Encoded{"flat", Flat{}, ElementType::f32, VectorStorage::keep},
                                         Encoded{"pq", Pq{.code_bytes = 2, .bits = 4}, ElementType::f32,
                                                 VectorStorage::f16}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(CudaResidentListFailures, EveryAllocationInTurn) {
  EXPECT_GE(gpu::fail_every_allocation(40, [&](const Context& context) { return right_answer(context); }),
            20);
}

TEST_P(CudaResidentListFailures, EveryCallInTurn) {
  gpu::fail_every_call({"cudaMallocFromPoolAsync", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaLaunchKernelEx",
                        "cudaStreamSynchronize"},
                       [&](const Context& context) { return right_answer(context); });
}

}  // namespace
}  // namespace nearwise

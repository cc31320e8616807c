// Arrays of other libraries, and an index prepared on one device and used on the other.
#include "nearwise/device_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "nearwise/exact.h"
#include "support/device_array.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using gpu::check;
using gpu::error_of;

class CudaDeviceMemory : public gpu::CudaTest {};

// A stream of another library.
struct ForeignStream {
  ForeignStream() { check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "test"); }
  ~ForeignStream() { gpu::ignore(cudaStreamDestroy(stream)); }
  std::uintptr_t handle() const { return reinterpret_cast<std::uintptr_t>(stream); }
  cudaStream_t stream = nullptr;
};

// 40 rows of 3 elements, which a stream fills when it is synchronised.
struct UnfinishedRows {
  explicit UnfinishedRows(const ForeignStream& filled_by) : elements(120), memory(elements.size()) {
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i * i % 89);
    check(cudaMemcpyAsync(memory.data(), elements.data(), elements.size() * sizeof(float),
                          cudaMemcpyHostToDevice, filled_by.stream),
          "test");
  }
  RowsView on_host() const { return {elements.data(), ElementType::f32, 40, 3, 3 * sizeof(float)}; }
  RowsView on_device() const {
    return {memory.data(), ElementType::f32, 40, 3, 3 * sizeof(float), {DeviceKind::cuda, 0}};
  }
  std::vector<float> elements;
  support::DeviceArray<float> memory;
};

void expect_finished(const UnfinishedRows& rows) {
  const Neighbors expected = knn(Context::cpu(), rows.on_host(), rows.on_host(), 4);
  EXPECT_TRUE(support::same(support::as_expected(expected),
                            knn(Context::cuda(0), rows.on_device(), rows.on_device(), 4)));
}

TEST_F(CudaDeviceMemory, StreamsOfOthersAreWaitedFor) {
  const ForeignStream stream;
  const UnfinishedRows rows(stream);
  wait_for_stream(Context::cuda(0), stream.handle());
  expect_finished(rows);
}

TEST_F(CudaDeviceMemory, OthersMakeReadyOnAStreamOfOurs) {
  const ForeignStream stream;
  const UnfinishedRows rows(stream);
  const ExchangeStream exchange(Context::cuda(0));
  EXPECT_GT(exchange.handle(), 2U);  // not a default stream
  cudaEvent_t filled = nullptr;
  check(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming), "test");
  check(cudaEventRecord(filled, stream.stream), "test");
  check(cudaStreamWaitEvent(reinterpret_cast<cudaStream_t>(exchange.handle()), filled, 0), "test");
  exchange.wait();
  expect_finished(rows);
  check(cudaEventDestroy(filled), "test");
}

TEST_F(CudaDeviceMemory, DefaultStreamsHaveNumbers) {
  for (const std::uintptr_t stream : {1, 2}) EXPECT_NO_THROW(wait_for_stream(Context::cuda(0), stream));
}

TEST_F(CudaDeviceMemory, IsFound) {
  const support::DeviceArray<float> memory(100);
  const float on_host = 0;
  EXPECT_EQ(place_of(memory.data()), (Place{DeviceKind::cuda, 0}));
  EXPECT_EQ(place_of(memory.data() + 99), (Place{DeviceKind::cuda, 0}));
  EXPECT_EQ(place_of(&on_host), Place{});
  EXPECT_EQ(place_of(nullptr), Place{});
}

TEST_F(CudaDeviceMemory, AnIndexIsPreparedOnOneSideAndUsedOnTheOther) {
  const Context cpu = Context::cpu(), cuda = Context::cuda(0);
  for (const Metric metric : support::every_metric) {
    const support::Problem problem = support::make_problem({.rows = 150, .queries = 6, .dim = 11, .seed = 8});
    const Exact on_cpu = Exact::prepare(cpu, problem.base, {.metric = metric});
    const Exact on_cuda = on_cpu.to(cuda);
    const Exact back = on_cuda.to(cpu);
    EXPECT_EQ(on_cuda.place(), cuda.place());
    EXPECT_EQ(back.place(), cpu.place());
    EXPECT_EQ(on_cuda.metric(), metric);
    const oracle::Answer expected = support::as_expected(on_cpu.search(cpu, problem.queries, 5));
    for (const Exact* index : {&on_cpu, &on_cuda, &back})
      for (const Context& context : {cpu, cuda})
        EXPECT_TRUE(support::same(expected, index->search(context, problem.queries, 5)));
  }
}

TEST_F(CudaDeviceMemory, RowsOnADeviceStayThere) {
  const ForeignStream stream;
  const UnfinishedRows rows(stream);
  wait_for_stream(Context::cuda(0), stream.handle());
  const Exact index = Exact::prepare(Context::cuda(0), rows.on_device());
  const Exact of_host_rows = Exact::prepare(Context::cpu(), rows.on_host());
  for (const Error& error :
       {error_of([&] { index.to(Context::cpu()); }),
        error_of([&] { index.search(Context::cpu(), rows.on_host(), 1); }),
        // Integers: such an index checks whether the queries are integers too.
        error_of([&] { of_host_rows.search(Context::cpu(), rows.on_device(), 1); }),
        error_of([&] { of_host_rows.range_search(Context::cpu(), rows.on_device(), 1); })}) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("are on cuda:0 and the work is on cpu"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace nearwise

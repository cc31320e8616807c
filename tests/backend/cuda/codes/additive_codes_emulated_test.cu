// Additive encoding with the maximum number of codebooks, training, and failing allocations and calls.
#include <gtest/gtest.h>

#include <cstdint>

#include "backend/cuda/failing_calls.h"
#include "cuda_emulation/call_counts.h"
#include "support/additive_cases.h"

namespace nearwise {
namespace {

using gpu::error_of;
using support::Kind;
using support::Rows;
using support::to_vector;

using CudaLargeAdditive = gpu::CudaTest;

TEST_F(CudaLargeAdditive, EveryLaneHasACode) {
  if (cuda_emulation::checks_accesses()) GTEST_SKIP() << "too slow: 992 tables of pairs";
  const Rows rows(support::generate(Kind::normal, 5, 1, 1), ElementType::f32);
  const AdditiveQuantizer quantizer = support::untrained_additive(Kind::normal, 1, 32, 2);
  const AdditiveEncodeOptions options = {.iterations = 3, .passes = 2, .perturbed = 20};
  EXPECT_TRUE(support::same(to_vector(quantizer.encode(Context::cpu({.threads = 1}), rows, options)),
                            quantizer.encode(Context::cuda(0), rows, options)));
}

TEST_F(CudaLargeAdditive, ManyCodebooksAndElements) {
  if (cuda_emulation::checks_accesses()) GTEST_SKIP() << "too slow; CodesOfManyShapes has smaller ones";
  for (const std::size_t codebooks : {7UL, 8UL, 13UL})
    for (const Kind kind : {Kind::normal, Kind::integers, Kind::offset_1e4}) {
      const std::size_t dim = 70 / codebooks * 4;
      const Rows rows(support::generate(kind, 21, dim, codebooks), ElementType::f32);
      const AdditiveQuantizer quantizer = support::untrained_additive(kind, dim, codebooks, 2);
      EXPECT_TRUE(support::same(to_vector(quantizer.encode(Context::cpu({.threads = 1}), rows)),
                                quantizer.encode(Context::cuda(0), rows)))
          << codebooks << " codebooks " << name(kind);
    }
}

TEST_F(CudaLargeAdditive, TrainsToTheBytesOfTheCpu) {
  if (cuda_emulation::checks_accesses()) GTEST_SKIP() << "too slow: k-means of 256 clusters";
  const Rows rows(support::generate(Kind::near_duplicates, 260, 2, 15), ElementType::f32);
  const AdditiveQuantizerOptions options = {.codebooks = 2, .rounds = 1, .iterations = 1};
  EXPECT_EQ(support::codewords_of(AdditiveQuantizer::train(Context::cpu({.threads = 1}), rows, options)),
            support::codewords_of(AdditiveQuantizer::train(Context::cuda(0), rows, options)));
}

// Tables and scores stay on the device.
TEST_F(CudaLargeAdditive, ASearchCopiesItsAnswersToTheHostAndNothingElse) {
  if (cuda_emulation::checks_accesses()) GTEST_SKIP() << "bytes do not depend on the checks";
  constexpr std::size_t queries = 9, dim = 4;
  const Context context = Context::cuda(0);
  const AdditiveQuantizer quantizer = support::untrained_additive(Kind::normal, dim, 3, 5);
  const Rows searched(support::generate(Kind::normal, queries, dim, 6), ElementType::f32);
  for (const std::size_t rows : {1500UL, 12'000UL}) {
    Matrix<std::uint8_t> codes(rows, quantizer.code_bytes());
    for (std::size_t i = 0; i < rows * codes.cols(); ++i)
      codes.data()[i] = static_cast<std::uint8_t>(i * 2654435761U >> 13);
    for (const std::size_t k : {1UL, 10UL, 1200UL}) {
      cuda_emulation::reset_call_counts();
      quantizer.search(context, searched, codes, k);
      const cuda_emulation::CallCounts counts = cuda_emulation::call_counts();
      EXPECT_EQ(counts.device_to_pinned + counts.device_to_pageable,
                queries * k * (sizeof(Id) + sizeof(float)))
          << rows << " codes, k " << k;
    }
  }
}

class CudaAdditiveFailures : public gpu::CudaTest {
 protected:
  static constexpr AdditiveEncodeOptions options = {.iterations = 1, .passes = 1};
  const Rows rows_{support::generate(Kind::normal, 40, 2, 3), ElementType::f32};
  const AdditiveQuantizer quantizer_ = support::untrained_additive(Kind::normal, 2, 1, 4);
  const Matrix<std::uint8_t> codes_ = quantizer_.encode(Context::cpu({.threads = 1}), rows_, options);
  const Neighbors found_ =
      quantizer_.search(Context::cpu({.threads = 1}), rows_.view().slice(0, 3), codes_, 2);

  bool right_codes(const Context& context) const {
    return support::same(to_vector(codes_), quantizer_.encode(context, rows_, options));
  }
  bool right_answer(const Context& context) const {
    return support::same(to_vector(found_.ids),
                         quantizer_.search(context, rows_.view().slice(0, 3), codes_, 2).ids);
  }
};

TEST_F(CudaAdditiveFailures, EveryAllocationInTurn) {
  EXPECT_GE(gpu::fail_every_allocation(12, [&](const Context& context) { return right_codes(context); }), 5);
  EXPECT_GE(gpu::fail_every_allocation(10, [&](const Context& context) { return right_answer(context); }), 5);
}

TEST_F(CudaAdditiveFailures, EveryCallInTurn) {
  gpu::fail_every_call({"cudaMallocFromPoolAsync", "cudaMemcpyAsync", "cudaLaunchKernelEx"},
                       [&](const Context& context) { return right_codes(context); });
  gpu::fail_every_call(
      {"cudaMallocFromPoolAsync", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaLaunchKernelEx"},
      [&](const Context& context) { return right_answer(context); });
}

TEST_F(CudaAdditiveFailures, CancelledAfterTheFirstTile) {
  const Rows rows(support::generate(Kind::normal, 200, 2, 5), ElementType::f32);
  Context* running = nullptr;
  double now = 0;
  Context context = Context::cuda(0, {.memory_limit = 80'000,
                                      .progress = [&](const Progress&) { running->cancel(); },
                                      .clock = [&] { return now += 1; }});
  running = &context;
  const Error error = error_of([&] { quantizer_.encode(context, rows, options); });
  EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
  EXPECT_EQ(context.memory_used(), 0U);
}

}  // namespace
}  // namespace nearwise

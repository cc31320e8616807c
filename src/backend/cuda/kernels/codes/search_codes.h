// Stochastic local search for additive codes, with the CPU's results.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace nearwise::gpu {

// All pointers are to device memory.
struct SearchCodesTask {
  const std::int16_t* own = nullptr;    // [count, books, 256]
  const std::int16_t* pairs = nullptr;  // [books, books - 1, 256, 256]
  const float* values = nullptr;        // [count, width]
  const float* codewords = nullptr;     // [books * 256, width]
  const std::uint64_t* keys = nullptr;  // [count]
  std::uint32_t count = 0;
  std::uint32_t books = 0;  // at most 32: one lane each
  std::uint32_t width = 0;
  std::uint32_t first_iteration = 0;  // iteration 0 has no perturbation
  std::uint32_t end_iteration = 0;
  std::uint32_t rounds = 0;     // of coordinate descent, at most
  std::uint32_t perturbed = 0;  // codes to perturb, at most `books`
  std::uint64_t seed = 0;
  bool starts = false;            // start from a residual quantizer's code; otherwise from `codes`
  std::uint8_t* codes = nullptr;  // [count, books] input and output
};
void launch_search_codes(cudaStream_t stream, const SearchCodesTask& task);

}  // namespace nearwise::gpu

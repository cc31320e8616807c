// The tables of additive encoding: 16-bit entries of rows and codewords, and of pairs of codewords, with the bits of the CPU's.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace nearwise::gpu {

// The codewords of codes/additive_codewords.h. All pointers are to device memory.
struct DeviceAdditiveCodewords {
  std::uint32_t dim = 0;
  std::uint32_t width = 0;
  std::uint32_t books = 0;
  const float* words = nullptr;    // [books * 256, width]
  const float* columns = nullptr;  // [books, dim, 256]
  const float* norms = nullptr;    // [books, 256]
  const float* scales = nullptr;   // [books]
};

// out [books, books - 1, 256, 256]: for a codebook and each of the others, [words of the other, words of the codebook].
void launch_pair_entries(cudaStream_t stream, const DeviceAdditiveCodewords& words, std::int16_t* out);

struct OwnEntriesTask {
  const float* values = nullptr;    // [count, width]
  const double* shrinks = nullptr;  // [count] that values are multiplied by
  std::uint32_t count = 0;
  std::int16_t* out = nullptr;  // [count, books, 256]
};
void launch_own_entries(cudaStream_t stream, const DeviceAdditiveCodewords& words,
                        const OwnEntriesTask& task);

}  // namespace nearwise::gpu

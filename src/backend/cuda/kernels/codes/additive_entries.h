// Tables of additive encoding: 16-bit entries of rows and codewords, and of pairs of codewords, with the
// CPU's bits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace nearwise::gpu {

// Codewords of codes/additive_codewords.h. All pointers are to device memory.
struct DeviceAdditiveCodewords {
  std::uint32_t dim = 0;
  std::uint32_t width = 0;
  std::uint32_t books = 0;
  const float* codewords = nullptr;  // [books * 256, width]
  const float* columns = nullptr;    // [books, dim, 256]
  const float* norms = nullptr;      // [books, 256]
  const float* scales = nullptr;     // [books]
};

// out [books, books - 1, 256, 256]: for a codebook and each other one, [codewords of the other, codewords of
// the codebook].
void launch_pair_entries(cudaStream_t stream, const DeviceAdditiveCodewords& codebooks, std::int16_t* out);

struct OwnEntriesTask {
  const float* values = nullptr;    // [count, width]
  const double* shrinks = nullptr;  // [count] scale factors of the values
  std::uint32_t count = 0;
  std::int16_t* out = nullptr;  // [count, books, 256]
};
void launch_own_entries(cudaStream_t stream, const DeviceAdditiveCodewords& codebooks,
                        const OwnEntriesTask& task);

}  // namespace nearwise::gpu

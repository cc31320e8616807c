// Codes of a tile of lists: interleaving, norms of reconstructions, decoding.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace nearwise::gpu {

// Codebooks of a product quantizer, whose parts are disjoint ranges of elements, or of an additive one, whose
// parts span all elements. All pointers are to device memory.
struct DeviceCodebooks {
  const float* codewords = nullptr;       // part after part, each [2^bits, length of the part]
  const std::uint32_t* begins = nullptr;  // [parts + 1] first elements; null: additive
  std::uint32_t parts = 0;
  std::uint32_t dim = 0;
  unsigned bits = 8;  // 4 or 8
};

struct CodeRowsTask {
  const std::uint8_t* codes = nullptr;   // [rows, code_bytes] as stored
  const std::uint32_t* lists = nullptr;  // [rows / 32] list of each group of 32 rows
  const float* centroids = nullptr;      // [lists of the tile, dim]
  std::uint32_t rows = 0;                // a multiple of 32
  std::uint32_t code_bytes = 0;
  DeviceCodebooks books;
};

// out: [rows / 32, words_per_code, 32] 32-bit words; unused bytes of the last word are zero.
void launch_interleave_codes(cudaStream_t stream, const CodeRowsTask& task, std::uint32_t words_per_code,
                             std::uint32_t* out);

// Half the squared norm of each reconstruction minus the centre [dim]; null: no centre. In f64, rounded once.
void launch_half_norms(cudaStream_t stream, const CodeRowsTask& task, const float* centre, float* out);

// out [rows, dim]: reconstructions.
void launch_decode_rows(cudaStream_t stream, const CodeRowsTask& task, float* out);

}  // namespace nearwise::gpu

// Codes of a tile of lists: interleaved as warps read them, measured, or decoded.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace nearwise::gpu {

// Of product codes, whose parts share a row between them, or of additive ones, whose parts have all of it. All pointers are
// to device memory.
struct DeviceCodebooks {
  const float* words = nullptr;           // part after part, each [2^bits, its elements]
  const std::uint32_t* begins = nullptr;  // [parts + 1] elements; null: additive
  std::uint32_t parts = 0;
  std::uint32_t dim = 0;
  unsigned bits = 8;  // or 4
};

struct CodeRowsTask {
  const std::uint8_t* codes = nullptr;   // [rows, code_bytes] as they are kept
  const std::uint32_t* lists = nullptr;  // [rows / 32] whose centroid is in the rows
  const float* centroids = nullptr;      // [lists of the tile, dim]
  std::uint32_t rows = 0;                // a multiple of 32
  std::uint32_t code_bytes = 0;
  DeviceCodebooks books;
};

// out: [rows / 32, words, 32], words of 32 bits; what is left of the last word is zero.
void launch_interleave_codes(cudaStream_t stream, const CodeRowsTask& task, std::uint32_t words,
                             std::uint32_t* out);

// Half the squared length of what a code stands for, less the centre [dim]; null: none. In f64, rounded once.
void launch_half_norms(cudaStream_t stream, const CodeRowsTask& task, const float* centre, float* out);

// out [rows, dim]: what codes stand for.
void launch_decode_rows(cudaStream_t stream, const CodeRowsTask& task, float* out);

}  // namespace nearwise::gpu

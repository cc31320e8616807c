// Scores of rows in probed lists.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace nearwise::gpu {

// A query and consecutive rows of one list in the tile.
struct ScanPair {
  std::uint32_t query = 0;      // in the tile
  std::uint32_t column = 0;     // first column of the scores
  std::uint32_t first_row = 0;  // in the tile; a multiple of 32
  std::uint32_t rows = 0;       // at least one
  std::uint32_t list = 0;       // in the tile
};

// All pointers are to device memory.
struct ScanTask {
  const ScanPair* pairs = nullptr;
  std::size_t count = 0;
  std::uint32_t max_rows = 0;  // per pair
  float* scores = nullptr;     // [queries, columns]
  std::size_t columns = 0;
};

// offsets [pairs]: -(q - centre)(c - centre) with the centroid c of the pair's list; in f64, rounded once.
struct PairOffsetsTask {
  const float* queries = nullptr;    // [queries, dim]
  const float* centroids = nullptr;  // [lists, dim]
  const float* centre = nullptr;     // [dim]; null: no centre
  std::uint32_t dim = 0;
  float* offsets = nullptr;
};
void launch_pair_offsets(cudaStream_t stream, const ScanTask& task, const PairOffsetsTask& offsets);

// Codes: half norm + (offset + sum of table entries).
struct CodeScan {
  const std::uint32_t* codes = nullptr;  // interleaved
  const float* half_norms = nullptr;     // [rows of the tile]; null: none
  const float* tables = nullptr;         // [queries, parts * 2^bits]
  const float* offsets = nullptr;        // [pairs]
  std::uint32_t parts = 0;
  std::uint32_t words_per_code = 0;  // 32-bit words
  unsigned bits = 8;
  std::uint32_t pairs_per_block = 1;  // pairs are ordered by query: consecutive ones share the tables
};
void launch_scan_codes(cudaStream_t stream, const ScanTask& task, const CodeScan& scan);

// Packed rows (pack_rows.h): the negated product, bias included.
struct PackedScan {
  const float* queries = nullptr;  // [queries, width]
  const float* rows = nullptr;     // [rows of the tile, width]
  std::uint32_t width = 0;
};
void launch_scan_packed(cudaStream_t stream, const ScanTask& task, const PackedScan& scan);

}  // namespace nearwise::gpu

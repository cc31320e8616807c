// Scores of the rows in lists that queries probe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace nearwise::gpu {

// A query and rows of one list that lie in the tile one after another.
struct ScanPair {
  std::uint32_t query = 0;      // of the tile
  std::uint32_t column = 0;     // of the scores where they begin
  std::uint32_t first_row = 0;  // of the tile; a multiple of 32
  std::uint32_t rows = 0;       // at least one
  std::uint32_t list = 0;       // of the tile
};

// All pointers are to device memory.
struct ScanTask {
  const ScanPair* pairs = nullptr;
  std::size_t count = 0;        // of pairs
  std::uint32_t most_rows = 0;  // of a pair
  float* scores = nullptr;      // [queries, columns]
  std::size_t columns = 0;
};

// offsets [pairs]: -(q - centre) (c - centre), of the centroid of the pair's list; in f64, rounded once.
struct PairOffsetsTask {
  const float* queries = nullptr;    // [queries, dim]
  const float* centroids = nullptr;  // [lists, dim]
  const float* centre = nullptr;     // [dim]; null: none
  std::uint32_t dim = 0;
  float* offsets = nullptr;
};
void launch_pair_offsets(cudaStream_t stream, const ScanTask& task, const PairOffsetsTask& of);

// Of product codes: half_norms + (offset + the sum of table entries).
struct CodeScan {
  const std::uint32_t* codes = nullptr;  // interleaved
  const float* half_norms = nullptr;     // [rows of the tile]; null: none
  const float* tables = nullptr;         // [queries, parts * 2^bits]
  const float* offsets = nullptr;        // [pairs]
  std::uint32_t parts = 0;
  std::uint32_t words = 0;  // of a code
  unsigned bits = 8;
  std::uint32_t pairs_per_block = 1;  // pairs are in the order of queries: so many share the tables
};
void launch_scan_codes(cudaStream_t stream, const ScanTask& task, const CodeScan& of);

// Of packed rows (pack_rows.h): the negated product, bias included.
struct PackedScan {
  const float* queries = nullptr;  // [queries, width]
  const float* rows = nullptr;     // [rows of the tile, width]
  std::uint32_t width = 0;
};
void launch_scan_packed(cudaStream_t stream, const ScanTask& task, const PackedScan& of);

}  // namespace nearwise::gpu

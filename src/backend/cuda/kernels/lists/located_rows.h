// Steps of a search in lists that the device keeps: which rows a query scans, what its best scores refer to,
// and the reported distances of those rows. No size of a list crosses the bus.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/codes/code_rows.h"
#include "backend/cuda/kernels/lists/scan_lists.h"
#include "nearwise/types.h"

namespace nearwise::gpu {

// Number of no row.
inline constexpr std::uint32_t no_located_row = UINT32_MAX;

// All pointers are to device memory, in all tasks.

// pairs [queries, probes]: the lists of a query in the given order; its columns are their rows, list after
// list. Empty lists have pairs without rows.
struct ProbePairsTask {
  const Id* probes = nullptr;  // [queries, probes] lists
  std::size_t queries = 0;
  std::uint32_t count = 0;                    // of probes
  const std::uint32_t* first_rows = nullptr;  // [lists] multiples of 32
  const std::uint32_t* sizes = nullptr;       // [lists]
  std::uint32_t lists = 0;
  ScanPair* pairs = nullptr;
};
void launch_probe_pairs(cudaStream_t stream, const ProbePairsTask& task);

// The rows at the columns of the best scores. Where a query has no such column, its id is no_id and its row
// no_located_row.
struct LocateTask {
  const float* scores = nullptr;  // [queries, length] best first
  const Id* columns = nullptr;    // [queries, length]
  std::size_t queries = 0;
  std::uint32_t length = 0;
  const ScanPair* pairs = nullptr;  // [queries, probes]
  std::uint32_t probes = 0;
  const Id* row_ids = nullptr;    // of all rows
  Id* ids = nullptr;              // [queries, length]
  std::uint32_t* rows = nullptr;  // [queries, length]
  // [queries, length] of the rows; null: not needed. Where there is no row, any list.
  std::uint32_t* lists = nullptr;
  float* last_scores = nullptr;  // [queries] infinity: all rows of the query are in its list of scores
};
void launch_locate_rows(cudaStream_t stream, const LocateTask& task);

// The rows of some of these ids.
struct FindRowsTask {
  const Id* wanted = nullptr;   // [queries, count]; no_id: none
  const float* keys = nullptr;  // [queries, count]
  std::size_t queries = 0;
  std::uint32_t count = 0;
  const Id* ids = nullptr;              // [queries, length], different
  const std::uint32_t* rows = nullptr;  // [queries, length]
  std::uint32_t length = 0;
  std::uint32_t* found = nullptr;  // [queries, count]
  float* last_keys = nullptr;      // [queries]
};
void launch_find_rows(cudaStream_t stream, const FindRowsTask& task);

// out [count, dim]: reconstructions of rows; zeros where there is no row.
struct DecodeLocatedTask {
  const std::uint32_t* codes = nullptr;  // interleaved
  std::uint32_t words_per_code = 0;      // 32-bit words
  const float* centroids = nullptr;      // [lists, dim]
  DeviceCodebooks books;
  const std::uint32_t* rows = nullptr;   // [count]
  const std::uint32_t* lists = nullptr;  // [count]
  std::size_t count = 0;
  float* out = nullptr;
};
void launch_decode_located(cudaStream_t stream, const DecodeLocatedTask& task);

// keys [queries, columns] of reported distances; NaN where there is no row.
struct EvaluateLocatedTask {
  const float* queries = nullptr;   // [queries, dim]
  const std::byte* rows = nullptr;  // at least one
  std::size_t stride_bytes = 0;
  std::uint32_t dim = 0;
  Metric metric = Metric::sqeuclidean;
  std::size_t pairs = 0;  // queries * columns
  std::size_t columns = 0;
  const std::uint32_t* row_indices = nullptr;  // [pairs]
  bool is_dense = false;                       // the row of pair i is row i
  float* keys = nullptr;
};
void launch_evaluate_located(cudaStream_t stream, ElementType type, const EvaluateLocatedTask& task);

}  // namespace nearwise::gpu

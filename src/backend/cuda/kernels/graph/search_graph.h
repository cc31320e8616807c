// Beam search in a graph (backend/graph_search.h), a warp per query.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace nearwise::gpu {

// Ends the rows of a query.
inline constexpr std::uint32_t no_graph_row = UINT32_MAX;

// The arrays of SearchGraphView and EntryTreeView, on the device.
struct GraphArrays {
  const std::uint8_t* codes = nullptr;
  std::uint32_t code_bytes = 0;  // of a row
  const std::uint8_t* nibbles = nullptr;
  std::uint32_t nibble_bytes = 0;  // 0: there are none
  const std::int32_t* edges = nullptr;
  std::uint32_t degree = 0;
  const std::uint8_t* top_codes = nullptr;
  std::uint32_t tops = 0;
  const std::uint32_t* ends = nullptr;
  const std::uint8_t* leaf_codes = nullptr;
  const std::uint32_t* leaf_rows = nullptr;
};

// How a search runs, and memory for a batch of queries.
struct GraphSearchTask {
  GraphArrays graph;
  std::uint32_t queries = 0;
  std::uint32_t k = 0;
  std::uint32_t beam = 0;
  std::uint32_t evaluated = 0;
  // [queries, query_size<ByteCodes> + query_size<NibbleCodes>] shifted elements (warp/query_codes.cuh), and
  // [queries, 2] sums of squares.
  const std::uint16_t* query_codes = nullptr;
  const std::uint32_t* query_squares = nullptr;
  const std::uint32_t* absent = nullptr;   // [queries], or null
  const std::uint64_t* allowed = nullptr;  // a bit per row, or null
  std::uint32_t first_bit = 0;             // of row 0
  std::uint32_t* rows = nullptr;           // [queries, evaluated] out: the best rows, ended by no_graph_row
  std::uint8_t* is_starved = nullptr;      // [queries] out, or null
  // Working memory, of each query; null where graph_search_memory() has no bytes.
  std::int64_t* beams = nullptr;
  std::int64_t* found = nullptr;
  std::int64_t* ranked = nullptr;
  std::uint32_t* slots = nullptr;
};

// Elements of a query in the arrays of the working memory.
struct GraphSearchMemory {
  std::size_t beams = 0;
  std::size_t found = 0;
  std::size_t ranked = 0;
  std::size_t slots = 0;
};
GraphSearchMemory graph_search_memory(const GraphSearchTask& task);

void launch_search_graph(cudaStream_t stream, const GraphSearchTask& task);

}  // namespace nearwise::gpu

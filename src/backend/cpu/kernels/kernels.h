// The innermost loops of the CPU backend, as tables of functions per instruction set.
//
// Written once in Highway's vectors, compiled per target, chosen at run time. All are noexcept and allocate nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/instruction_set.h"
#include "nearwise/types.h"

namespace nearwise::cpu {

inline constexpr std::size_t element_types = 5;  // the number of ElementType's values

// --- row_distance.cpp: sums in f64, defined bit for bit (core/distance.h) -----------------------------------------

struct RowDistanceArgs {
  const double* query = nullptr;  // [dim]
  const std::byte* base = nullptr;
  std::size_t stride_bytes = 0;
  std::size_t dim = 0;
  const std::uint32_t* rows = nullptr;  // [count] row numbers; null: rows 0 to count - 1
  std::size_t count = 0;
  double* sums = nullptr;   // [count]
  double* norms = nullptr;  // [count] sums of squares of the rows, written by product_and_norm only
};

// One function per ElementType of the base.
struct RowDistanceKernels {
  using Function = void (*)(const RowDistanceArgs&) noexcept;
  Function difference[element_types];        // squared differences
  Function product[element_types];           // products
  Function product_and_norm[element_types];  // products, and the rows' own squares
};
const RowDistanceKernels& row_distance_kernels(InstructionSet set);

// --- pack_rows.cpp: rows in the form scan_panels reads -------------------------------------------------------------

// Rows are packed in groups: one cache line of the panel takes an element of each row of a group.
inline constexpr std::size_t pack_group = 16;

// A panel holds `width` rows element by element: element i of row r at panel[i * width + r].
struct PackArgs {
  const std::byte* rows = nullptr;
  std::size_t stride_bytes = 0;
  std::size_t count = 0;  // at most width; the panel is filled up with zero rows
  std::size_t dim = 0;
  std::size_t width = 0;
  const float* centre = nullptr;  // [dim] subtracted; null: none
  bool normalise = false;         // to length 1 (a zero row stays zero); not together with centre
  float* panel = nullptr;         // [dim, width]
  double* norms = nullptr;        // [count] length of the packed row
  float* scratch = nullptr;       // [pack_group, dim]
};

struct PackRowsKernels {
  // Returns the index of the first row with a non-finite element, or count.
  using Function = std::size_t (*)(const PackArgs&) noexcept;
  Function pack[element_types];
};
const PackRowsKernels& pack_rows_kernels(InstructionSet set);

// --- scan_panels.cpp: the blocked product, fused with the choice of candidates -------------------------------------

// Candidates of every query, appended by the kernel. A query's arrays have `capacity` usable entries and room for one
// vector more.
struct CandidateLists {
  float* scores = nullptr;          // [queries, stride]
  std::uint32_t* rows = nullptr;    // [queries, stride]
  std::uint32_t* counts = nullptr;  // [queries]
  float* cutoffs = nullptr;         // [queries] a score above it cannot be among the best; non-increasing
  std::size_t stride = 0;
  std::size_t capacity = 0;
};

struct ScanArgs {
  const float* query_panels = nullptr;  // [panels, dim, query_width]
  std::size_t query_panel_count = 0;
  std::size_t first_query = 0;         // index in `lists` of the first query
  const float* base_panels = nullptr;  // [panels, dim, base_width]
  const float* biases = nullptr;       // [panels, base_width] score = bias - product
  std::size_t base_panel_count = 0;
  std::uint32_t first_row = 0;  // row number of the first base row
  std::size_t dim = 0;
  CandidateLists lists;
  // Called when a list cannot take base_width more entries; makes room and lowers the cutoff.
  void (*make_room)(void* owner, std::size_t query) = nullptr;
  void* owner = nullptr;
};

struct ScanPanelsKernels {
  std::size_t query_width;
  std::size_t base_width;
  void (*scan)(const ScanArgs&);  // not noexcept: make_room may throw
};
const ScanPanelsKernels& scan_panels_kernels(InstructionSet set);

}  // namespace nearwise::cpu

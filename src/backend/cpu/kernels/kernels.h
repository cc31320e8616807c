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

// --- select_k.cpp: the loops of selection over values, images and keys (backend/cpu/selection_key.h) ---------------

// Values are tested in segments of this many; a scan goes on only where all survivors of a segment have room.
inline constexpr std::size_t select_segment = 2048;
// Keys that a scan may write behind its capacity.
inline constexpr std::size_t select_overrun = 2;
// Images of a sample are filled up to a multiple of this.
inline constexpr std::size_t sample_granule = 64;

enum class SelectTest : std::uint8_t { at_most, at_least, not_a_number };
inline constexpr std::size_t select_tests = 3;

struct SelectScanArgs {
  const float* row = nullptr;
  std::size_t begin = 0;  // positions to test
  std::size_t end = 0;
  float threshold = 0;
  std::int64_t* keys = nullptr;  // [capacity + select_overrun]
  std::size_t count = 0;         // of keys so far
  std::size_t capacity = 0;
};

struct SelectScanEnd {
  std::size_t next = 0;   // the first position not tested: end, or where there was no room
  std::size_t count = 0;  // of keys, in the order of positions
};

// `chunks` pieces of a row, `length` values each, `stride` values apart; all of a row is one piece. The sample is
// dealt out to `groups` in turn, of which the least images remain: few enough to be counted many times, and little
// above the least of the sample as long as those are fewer than the groups.
struct SampleArgs {
  const float* row = nullptr;
  std::size_t length = 0;
  std::size_t chunks = 0;
  std::size_t stride = 0;
  Order order = Order::smallest;
  std::size_t groups = 0;          // a multiple of sample_granule; 0: every value is its own
  std::int32_t* images = nullptr;  // [size of the sample, filled up with nan_image]; groups are its beginning
};

struct ImageRange {
  std::int32_t lowest = 0;
  std::int32_t highest = 0;
};

struct SelectKKernels {
  // Appends the keys of values that pass, by SelectTest.
  SelectScanEnd (*scan[select_tests])(const SelectScanArgs&) noexcept;
  // Writes keys[i] of all values at positions begin <= i < end, NaNs too.
  void (*encode)(const float* row, std::size_t begin, std::size_t end, Order order,
                 std::int64_t* keys) noexcept;
  ImageRange (*sample)(const SampleArgs&) noexcept;
  // How many of the images, a multiple of sample_granule, are at most `limit` < nan_image.
  std::size_t (*count_images)(const std::int32_t* images, std::size_t count, std::int32_t limit) noexcept;
  std::size_t (*count_keys)(const std::int64_t* keys, std::size_t count, std::int64_t limit) noexcept;
  // Keeps the keys that are at most `limit`, in their order; returns how many.
  std::size_t (*keep_keys)(std::int64_t* keys, std::size_t count, std::int64_t limit) noexcept;
};
const SelectKKernels& select_k_kernels(InstructionSet set);

}  // namespace nearwise::cpu

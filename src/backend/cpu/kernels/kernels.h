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

// --- row_estimate.cpp: sums in f32, as fast as rows can be read -----------------------------------------------------

struct RowEstimateArgs {
  const float* query = nullptr;                 // [dim]
  const std::int16_t* integer_query = nullptr;  // [dim] of the integer functions
  const std::byte* base = nullptr;
  std::size_t stride_bytes = 0;
  std::size_t dim = 0;
  // [count] row numbers; null: rows 0 to count - 1, and those behind them are asked for.
  const std::uint32_t* rows = nullptr;
  std::size_t count = 0;
  float* sums = nullptr;    // [count]
  float* others = nullptr;  // [count] product: sums of absolute products; product_and_norm: the rows' squares
};

// One function per ElementType of the base.
struct RowEstimateKernels {
  using Function = void (*)(const RowEstimateArgs&) noexcept;
  Function difference[element_types];
  Function product[element_types];
  Function product_and_norm[element_types];
  // Of u8 and i8 rows, null for others: 32-bit sums, exact up to most_integer_dim; absolute values in `others`.
  Function integer_difference[element_types];
  Function integer_product[element_types];
};
const RowEstimateKernels& row_estimate_kernels(InstructionSet set);

// --- pack_rows.cpp: rows in the form a scan reads -------------------------------------------------------------------

// Rows are packed in groups: one cache line of the panel takes an element of each row of a group.
inline constexpr std::size_t pack_group = 16;

// The numbers that are multiplied: f32; bf16, rounded; or the integers of u8 and i8 rows as they are, or with their
// highest bit flipped (u8 becomes signed, i8 unsigned). Integers widened to 16 bits for vpmaddwd were measured too: no
// faster than f32, which holds them exactly as well.
enum class Encoding : std::uint8_t { f32, bf16, byte, flipped_byte };
inline constexpr std::size_t encodings = 4;
inline constexpr std::size_t encoded_sizes[encodings] = {4, 2, 1, 1};  // bytes of an element
constexpr bool is_integer(Encoding encoding) { return encoding >= Encoding::byte; }

// What is known of a packed row.
struct PackedRow {
  double norm = 0;      // length of the encoded vector, its square within dim * 2^-24 (2^-50 if precise)
  double residual = 0;  // length of the difference to the vector that was encoded, or more
  // Of an integer encoding only, and of the row as given (before a flip).
  std::int32_t squares = 0;
  std::int32_t sum = 0;
};

// A panel holds `width` rows, a unit of each in turn: bytes [u * unit_bytes, ...) of row r lie at
// panel[(u * width + r) * unit_bytes].
struct PackArgs {
  const std::byte* rows = nullptr;
  std::size_t stride_bytes = 0;
  std::size_t count = 0;  // at most width; the panel is filled up with zero rows
  std::size_t dim = 0;
  std::size_t width = 0;
  std::size_t unit_bytes = 4;     // 4 or 64
  std::size_t row_bytes = 0;      // of an encoded row: a multiple of unit_bytes, filled up with zeros
  const float* centre = nullptr;  // [dim] subtracted; null: none
  bool normalise = false;         // to length 1 (a zero row stays zero); not together with centre
  bool precise = false;           // measure the length in f64 whatever it costs
  std::byte* panel = nullptr;     // [row_bytes / unit_bytes, width, unit_bytes]
  PackedRow* packed = nullptr;    // [count]
  std::byte* scratch = nullptr;   // pack_scratch_bytes(), aligned to 64
};

constexpr std::size_t pack_scratch_bytes(std::size_t dim, std::size_t row_bytes) {
  return pack_group * row_bytes + dim * sizeof(float);
}

struct PackRowsKernels {
  // Returns the index of the first row with a non-finite element, or count.
  using Function = std::size_t (*)(const PackArgs&) noexcept;
  Function pack[encodings][element_types];  // null: that type has no such encoding
  // Whether all of them are whole numbers from 0 to 255.
  bool (*holds_bytes)(const float* values, std::size_t count) noexcept;
};
const PackRowsKernels& pack_rows_kernels(InstructionSet set);

// --- scans: the blocked product, fused with the choice of candidates -----------------------------------------------

// Candidates of every query, appended by the kernel. A query's arrays have `capacity` usable entries and room for one
// vector more.
struct CandidateLists {
  float* scores = nullptr;          // [queries, stride]
  std::uint32_t* rows = nullptr;    // [queries, stride]
  std::uint32_t* counts = nullptr;  // [queries]
  float* cutoffs = nullptr;         // [queries] a score above it cannot be among the best; NaN: none can
  std::size_t stride = 0;
  std::size_t capacity = 0;
};

// --- candidate_list.cpp: their clean-up -----------------------------------------------------------------------------

struct CandidateListKernels {
  // A score that at least k of `count` >= k are no larger than; at most a few more than k.
  float (*kth_score)(const float* scores, std::size_t count, std::size_t k) noexcept;
  // Moves the entries with scores up to the cutoff to the front and returns their number.
  std::size_t (*keep_at_most)(float* scores, std::uint32_t* rows, std::size_t count, float cutoff) noexcept;
};
const CandidateListKernels& candidate_list_kernels(InstructionSet set);

// Scores are bias - product in f32, or (bias - 2 product) / 2 of integers, rounded once.
struct ScanArgs {
  const std::byte* query_panels = nullptr;
  std::size_t query_panel_count = 0;
  std::size_t first_query = 0;  // index in `lists` of the first query
  const std::byte* base_panels = nullptr;
  const float* biases = nullptr;                 // [panels, base_width] of a product in f32
  const std::int32_t* integer_biases = nullptr;  // [panels, base_width] of a product of integers
  const std::int32_t* half_biases = nullptr;     // [panels, base_width] the same, halved and rounded down
  std::size_t base_panel_count = 0;
  std::uint32_t first_row = 0;  // row number of the first base row
  std::uint32_t end_row = 0;    // places from this row number on are empty
  std::size_t row_bytes = 0;    // of an encoded row
  CandidateLists lists;
  // Called when a list cannot take base_width more entries; makes room and lowers the cutoff.
  void (*make_room)(void* owner, std::size_t query) = nullptr;
  void* owner = nullptr;
};

// Rows against rows of the same set, every pair once: each product serves both rows' lists. Lists, cutoffs and row numbers
// are those of the set; a row is never its own candidate.
struct PairScanArgs : ScanArgs {
  const float* query_biases = nullptr;  // [query panels, query_width], of the queries as rows of the base
  const std::int32_t* integer_query_biases = nullptr;
  const std::int32_t* half_query_biases = nullptr;
  bool diagonal = false;  // queries and base rows are the same: only pairs on and above the diagonal
};

// The least score of every query, its row, and the least score of all other rows: enough to know the nearest row, unless
// the two scores are too close to tell. Of equal scores any row may come first.
struct NearestScanArgs {
  const std::byte* query_panels = nullptr;
  std::size_t query_panel_count = 0;
  const std::byte* base_panels = nullptr;
  const float* biases = nullptr;  // [panels, base_width], infinite in empty places
  std::size_t base_panel_count = 0;
  std::uint32_t first_row = 0;  // row number of the first base row
  std::size_t row_bytes = 0;    // of an encoded row
  // [query panels, query_width] of the rows shown so far; infinite before the first. Updated.
  float* best = nullptr;
  float* second = nullptr;
  std::uint32_t* rows = nullptr;  // of the best
};

// One way to compute scores: how queries and base rows are packed, and the function that multiplies them.
struct ScanKernel {
  Encoding query_encoding = Encoding::f32;
  Encoding base_encoding = Encoding::f32;
  std::size_t query_width = 0;  // rows per panel
  std::size_t base_width = 0;
  std::size_t query_unit_bytes = 4;
  std::size_t base_unit_bytes = 4;
  std::size_t row_granule_bytes = 4;  // encoded rows are filled up to a multiple
  // Caches: a call should get about this many bytes of queries and of base rows.
  std::size_t query_group_bytes = 0;
  std::size_t base_step_bytes = 0;
  void (*scan)(const ScanArgs&) = nullptr;            // not noexcept: make_room may throw
  void (*scan_pairs)(const PairScanArgs&) = nullptr;  // null: no such scan. Needs equal widths.
  void (*scan_nearest)(const NearestScanArgs&) noexcept =
      nullptr;  // null: no such scan. Products in f32 only.
};

// Bytes of one encoded row.
constexpr std::size_t encoded_row_bytes(const ScanKernel& kernel, std::size_t dim) {
  const std::size_t bytes = dim * encoded_sizes[static_cast<std::size_t>(kernel.base_encoding)];
  return (bytes + kernel.row_granule_bytes - 1) / kernel.row_granule_bytes * kernel.row_granule_bytes;
}

// --- scan_panels.cpp: Highway's vectors, any instruction set -------------------------------------------------------

const ScanKernel& f32_panels(InstructionSet set);

// --- select_k.cpp: the loops of selection over values, images and keys (backend/cpu/kernels/selection_key.h) ---------------

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

// Inner loops of the CPU backend, as tables of functions per instruction set.
//
// Written once with Highway, compiled per target, selected at run time. Kernels are noexcept and do not
// allocate.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/instruction_set.h"
#include "nearwise/types.h"

namespace nearwise::cpu {

inline constexpr std::size_t element_types = 5;  // number of values of ElementType

// --- row_distance.cpp: sums in f64, bit for bit as defined in core/distance.h ----------------------------

struct RowDistanceArgs {
  const double* query = nullptr;  // [dim]
  const std::byte* base = nullptr;
  std::size_t stride_bytes = 0;
  std::size_t dim = 0;
  const std::uint32_t* rows = nullptr;          // [count] row numbers; null: rows 0 to count - 1
  const std::byte* const* addresses = nullptr;  // [count] of scattered rows, instead of `base` and `rows`
  std::size_t count = 0;
  double* sums = nullptr;   // [count]
  double* norms = nullptr;  // [count] squared norms of the rows, written by product_and_norm only
};

// One function per ElementType of the base.
struct RowDistanceKernels {
  using Function = void (*)(const RowDistanceArgs&) noexcept;
  Function difference[element_types];        // squared differences
  Function product[element_types];           // products
  Function product_and_norm[element_types];  // products, and squared norms of the rows
};
const RowDistanceKernels& row_distance_kernels(InstructionSet set);

// --- row_estimate.cpp: sums in f32, limited by memory bandwidth -------------------------------------------

struct RowEstimateArgs {
  const float* query = nullptr;                 // [dim]
  const std::int16_t* integer_query = nullptr;  // [dim] for the integer functions
  const std::byte* base = nullptr;
  std::size_t stride_bytes = 0;
  std::size_t dim = 0;
  // [count] of scattered rows; null: rows 0 to count - 1 of `base`, and the following rows are prefetched.
  const std::byte* const* addresses = nullptr;
  std::size_t count = 0;
  float* sums = nullptr;    // [count]
  float* others = nullptr;  // [count] product: sums of absolute products; product_and_norm: squared norms
};

// One function per ElementType of the base.
struct RowEstimateKernels {
  using Function = void (*)(const RowEstimateArgs&) noexcept;
  Function difference[element_types];
  Function product[element_types];
  Function product_and_norm[element_types];
  // For u8 and i8 rows, else null: 32-bit sums, exact up to max_integer_dim; absolute values in `others`.
  Function integer_difference[element_types];
  Function integer_product[element_types];
};
const RowEstimateKernels& row_estimate_kernels(InstructionSet set);

// --- pack_rows.cpp: vectors in the layout of a scan -------------------------------------------------------

// Vectors are packed in groups: a cache line of the panel holds one f32 element of each vector of a group.
inline constexpr std::size_t pack_group = 16;

// Type of the factors: f32; bf16, rounded; integers from -127 to 127 times a scale of the vector, rounded, as
// signed bytes or plus 128, or from -63 to 63 as signed bytes; or the integers of u8 and i8 vectors,
// unchanged or with the highest bit flipped (u8 becomes signed, i8 unsigned). Integers widened to 16 bits for
// vpmaddwd were no faster than f32, which also represents them exactly.
enum class Encoding : std::uint8_t {
  f32,
  bf16,
  scaled_byte,
  scaled_unsigned_byte,
  scaled_seven_bits,
  byte,
  flipped_byte
};
inline constexpr std::size_t encodings = 7;
inline constexpr std::size_t encoded_sizes[encodings] = {4, 2, 1, 1, 1, 1, 1};  // bytes of an element
// Whether elements are the integers of the vector itself.
constexpr bool is_integer(Encoding encoding) { return encoding >= Encoding::byte; }
constexpr bool is_scaled(Encoding encoding) {
  return encoding >= Encoding::scaled_byte && encoding <= Encoding::scaled_seven_bits;
}
// Whether the encoding may lose so much that scores exclude too few rows.
constexpr bool is_coarse(Encoding encoding) { return encoding == Encoding::bf16 || is_scaled(encoding); }

// Lengths and sums of a packed vector.
struct PackedRow {
  double norm = 0;      // of the encoded vector; relative error of its square: dim * 2^-24 (2^-50 if precise)
  double residual = 0;  // upper bound of the norm of the encoding error
  // Scaled encodings only: the encoded vector is this times its integers.
  float scale = 0;
  // Integer encodings only, of the original vector (before a flip); scaled ones: the sum of the integers.
  std::int32_t squares = 0;
  std::int32_t sum = 0;
};

// A panel interleaves units of `width` rows: unit u of row r is at panel[(u * width + r) * unit_bytes].
struct PackArgs {
  const std::byte* rows = nullptr;
  std::size_t stride_bytes = 0;
  std::size_t count = 0;  // at most width; the panel is padded with zero rows
  std::size_t dim = 0;
  std::size_t width = 0;
  std::size_t unit_bytes = 4;     // 4 or 64
  std::size_t row_bytes = 0;      // of an encoded row: a multiple of unit_bytes, padded with zeros
  const float* centre = nullptr;  // [dim] subtracted; null: none
  bool normalise = false;         // to length 1 (zero vectors stay zero); not together with centre
  bool precise = false;           // compute the norm in f64
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
  Function pack[encodings][element_types];  // null: unsupported
  // Whether all values are integers from 0 to 255.
  bool (*holds_bytes)(const float* values, std::size_t count) noexcept;
};
const PackRowsKernels& pack_rows_kernels(InstructionSet set);

// --- scans: blocked products fused with the selection of candidates ---------------------------------------

// Candidates of every query, appended by the kernel. A query's arrays have `capacity` usable entries and
// space for one more register.
struct CandidateLists {
  float* scores = nullptr;          // [queries, stride]
  std::uint32_t* rows = nullptr;    // [queries, stride]
  std::uint32_t* counts = nullptr;  // [queries]
  float* cutoffs = nullptr;         // [queries] maximum score of a candidate; NaN: no candidates
  std::size_t stride = 0;
  std::size_t capacity = 0;
  const float* slack_factors = nullptr;  // [queries] scaled products only (ScoreBound::slack_factor)
};

// --- candidate_list.cpp: clean-up of candidate lists ------------------------------------------------------

struct CandidateListKernels {
  // A score that is not exceeded by at least k and few more than k of `count` >= k scores.
  float (*kth_score)(const float* scores, std::size_t count, std::size_t k) noexcept;
  // Moves entries with scores up to the cutoff to the front and returns their number.
  std::size_t (*keep_at_most)(float* scores, std::uint32_t* rows, std::size_t count, float cutoff) noexcept;
};
const CandidateListKernels& candidate_list_kernels(InstructionSet set);

// Scores are bias - product in f32; (bias - 2 product) / 2 for integers, rounded once; or, for scaled
// integers, bias - residual * slack_factor - query scale * row scale * product.
struct ScanArgs {
  const std::byte* query_panels = nullptr;
  std::size_t query_panel_count = 0;
  std::size_t first_query = 0;  // index in `lists` of the first query
  const std::byte* base_panels = nullptr;
  const float* biases = nullptr;                 // [panels, base_width] floating-point products
  const std::int32_t* integer_biases = nullptr;  // [panels, base_width] integer products
  const std::int32_t* half_biases = nullptr;     // [panels, base_width] floor(integer bias / 2)
  // Scaled products only.
  const float* row_scales = nullptr;           // [panels, base_width]
  const float* row_residuals = nullptr;        // [panels, base_width]
  const float* query_scales = nullptr;         // [queries] from query 0 of `lists` on
  const std::int32_t* query_starts = nullptr;  // [queries] what a sum of products starts from
  std::size_t base_panel_count = 0;
  std::uint32_t first_row = 0;  // row number of the first base row
  std::uint32_t end_row = 0;    // row numbers from here on are padding
  std::size_t row_bytes = 0;    // of an encoded row
  // Integer products: one bit for each base row, set if it may be a candidate; null: all. Floating-point
  // scans need none, since the bias of a row that may not is infinite.
  const std::uint16_t* allowed = nullptr;
  CandidateLists lists;
  // Called when a list has no room for base_width more entries; makes room and lowers the cutoff.
  void (*make_room)(void* owner, std::size_t query) = nullptr;
  void* owner = nullptr;
};

// Self-join: every pair is multiplied once and updates the lists of both vectors. Lists, cutoffs and row
// numbers are those of the base; a vector is never its own candidate.
struct PairScanArgs : ScanArgs {
  const float* query_biases = nullptr;  // [query panels, query_width], biases of the queries as base vectors
  const std::int32_t* integer_query_biases = nullptr;
  const std::int32_t* half_query_biases = nullptr;
  bool diagonal = false;  // queries and base are the same: only pairs on and above the diagonal
};

// Two smallest scores of every query and the row of the smallest: enough to decide the nearest vector unless
// they are closer than the error bound. Ties are in no particular order.
struct NearestScanArgs {
  const std::byte* query_panels = nullptr;
  std::size_t query_panel_count = 0;
  const std::byte* base_panels = nullptr;
  const float* biases = nullptr;  // [panels, base_width], padded with infinity
  std::size_t base_panel_count = 0;
  std::uint32_t first_row = 0;  // row number of the first base row
  std::size_t row_bytes = 0;    // of an encoded row
  // [query panels, query_width] in and out, over the rows scanned so far; initially infinite.
  float* best = nullptr;
  float* second = nullptr;
  std::uint32_t* rows = nullptr;  // of `best`
};

// A scan: the packing of queries and base vectors, and the functions that multiply them.
struct ScanKernel {
  Encoding query_encoding = Encoding::f32;
  Encoding base_encoding = Encoding::f32;
  std::size_t query_width = 0;  // rows per panel
  std::size_t base_width = 0;
  std::size_t query_unit_bytes = 4;
  std::size_t base_unit_bytes = 4;
  std::size_t row_granule_bytes = 4;  // encoded rows are padded to a multiple
  // Approximate bytes of queries and base vectors per call that fit the caches.
  std::size_t query_group_bytes = 0;
  std::size_t base_step_bytes = 0;
  void (*scan)(const ScanArgs&) = nullptr;            // not noexcept: make_room may throw
  void (*scan_pairs)(const PairScanArgs&) = nullptr;  // may be null; requires equal widths
  // May be null; floating-point products only.
  void (*scan_nearest)(const NearestScanArgs&) noexcept = nullptr;
};

// Whether it multiplies tiles (AMX): a unit of a base panel is then a cache line.
constexpr bool multiplies_tiles(const ScanKernel& kernel) { return kernel.base_unit_bytes == 64; }

// Bytes of one encoded row.
constexpr std::size_t encoded_row_bytes(const ScanKernel& kernel, std::size_t dim) {
  const std::size_t bytes = dim * encoded_sizes[static_cast<std::size_t>(kernel.base_encoding)];
  return (bytes + kernel.row_granule_bytes - 1) / kernel.row_granule_bytes * kernel.row_granule_bytes;
}

// --- scan_panels.cpp: f32 scan for any instruction set ----------------------------------------------------

const ScanKernel& f32_panels(InstructionSet set);

// --- scan_scaled.cpp: scan of scaled integers where there are no dot products of AVX-512 ------------------

// Null: none for this instruction set.
const ScanKernel* scaled_panels(InstructionSet set);

// --- select_k.cpp: selection over values, images and keys (selection_key.h) -------------------------------

// Values per segment; a scan stops before a segment whose passing values do not fit.
inline constexpr std::size_t select_segment = 2048;
// Keys that a scan may write past its capacity.
inline constexpr std::size_t select_overrun = 2;
// Images of a sample are padded to a multiple of this.
inline constexpr std::size_t sample_granule = 64;

enum class SelectTest : std::uint8_t { at_most, at_least, not_a_number };
inline constexpr std::size_t select_tests = 3;

struct SelectScanArgs {
  const float* row = nullptr;
  std::size_t begin = 0;  // positions to test
  std::size_t end = 0;
  float threshold = 0;
  std::int64_t* keys = nullptr;  // [capacity + select_overrun]
  std::size_t count = 0;         // keys so far
  std::size_t capacity = 0;
};

struct SelectScanEnd {
  std::size_t next = 0;   // first position not tested: end, or the segment that did not fit
  std::size_t count = 0;  // keys, in the order of positions
};

// Samples `chunks` pieces of a row, `length` values each, `stride` values apart; a whole row is one piece.
// The sample is distributed cyclically to `groups`, and the minimum image of each group is kept: few enough
// to be counted many times, and close to the smallest images of the sample if their number is below `groups`.
struct SampleArgs {
  const float* row = nullptr;
  std::size_t length = 0;
  std::size_t chunks = 0;
  std::size_t stride = 0;
  Order order = Order::smallest;
  std::size_t groups = 0;          // a multiple of sample_granule; 0: keep all values
  std::int32_t* images = nullptr;  // [sample size, padded with nan_image] out; groups come first
};

struct ImageRange {
  std::int32_t lowest = 0;
  std::int32_t highest = 0;
};

struct SelectKKernels {
  // Appends the keys of values that pass; indexed by SelectTest.
  SelectScanEnd (*scan[select_tests])(const SelectScanArgs&) noexcept;
  // Writes keys[i] of the values at positions begin <= i < end, including NaN.
  void (*encode)(const float* row, std::size_t begin, std::size_t end, Order order,
                 std::int64_t* keys) noexcept;
  ImageRange (*sample)(const SampleArgs&) noexcept;
  // Number of images that are at most `limit` < nan_image. count: a multiple of sample_granule.
  std::size_t (*count_images)(const std::int32_t* images, std::size_t count, std::int32_t limit) noexcept;
  std::size_t (*count_keys)(const std::int64_t* keys, std::size_t count, std::int64_t limit) noexcept;
  // Keeps the keys that are at most `limit`, in order, and returns their number.
  std::size_t (*keep_keys)(std::int64_t* keys, std::size_t count, std::int64_t limit) noexcept;
};
const SelectKKernels& select_k_kernels(InstructionSet set);

}  // namespace nearwise::cpu

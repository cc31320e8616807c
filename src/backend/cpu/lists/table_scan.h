// Scan of codes for one query by lookup tables (asymmetric distance computation). Lists are not packed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backend/cpu/kernels/codes/part_sums.h"
#include "backend/cpu/lists/list_bound.h"
#include "backend/cpu/lists/list_collector.h"
#include "backend/cpu/x86/scan_codes.h"
#include "codes/code_norms.h"
#include "codes/codeword_tables.h"

namespace nearwise::cpu {

// Scans lists for one query at a time. Scores have ScoreForm::corrected. Not thread-safe.
//
// For a reconstruction y of centroid c and codewords r, with t its norm (CodeNorms), the score is
//
//     -q'c' + t - q'r     euclidean metrics, t = |y'|^2 / 2: half the squared distance minus |q'|^2 / 2
//     -qc - qr            inner_product
//     (-qc - qr) / t      cosine, t = |y| and q scaled to length 1: the distance minus 1
//
// (list_bound.h): an offset per query and list, a norm per vector, and a sum over the query's tables.
class TableScan {
 public:
  // Whether lookups are done in registers, 64 codes at a time.
  static bool has_registers(const CpuStream& cpu);

  TableScan(CpuStream& cpu, const ListSearchArgs& args, const CodewordTables& codewords,
            const ListNumbers& numbers, const ListBound& bound, ListCollector& found);

  // Scans every `step`-th probed list of the query, starting with `first`.
  void scan_query(std::size_t query, std::size_t first, std::size_t step);

 private:
  static constexpr std::size_t block_rows = 64;
  // Which vectors pass the comparison of byte sums with the threshold.
  enum class Pass : std::uint8_t { all, some, none };

  void fill_tables();
  void fill_offsets();
  void scan(std::size_t probe, std::size_t next);
  void begin_list(std::size_t list);
  void fill_bytes(double widest);
  void find_limit(const ListView& view);
  double max_score(std::uint16_t sum) const;
  double kth_quotient(const ListView& view, std::size_t rows);
  void set_threshold();
  void scan_block(const ListView& view, std::size_t first, std::uint32_t first_number);
  // Adds the row to the buffer of candidates, or evaluates it if it has no score.
  void score_row(const std::byte* code, float norm, std::uint32_t number);
  void flush_candidates();
  double factor() const;
  double rounding_error() const;
  // Norms of rows [first, first + 64) of the current list, or null.
  const float* norms_of(const ListView& view, std::size_t first);
  x86::CodeScanArgs codes_of(const ListView& view, std::size_t first, const float* norms) const;
  // Prefetches codes and norms of a block.
  void prefetch_block(std::size_t probe, std::size_t first) const;

  CpuStream& cpu_;
  const ListSearchArgs& args_;
  const CodewordTables& codewords_;
  const ListNumbers& numbers_;
  const ListBound& bound_;
  ListCollector& found_;
  const PartSumsKernels& kernels_;
  const std::size_t parts_;
  const std::size_t codewords_per_part_;
  const bool with_bytes_;
  const bool with_norms_;
  const double longest_;             // upper bound of |y'|
  const Lengths longest_codewords_;  // upper bound of |r|
  Buffer<double> query_;             // q', scaled to length 1 for cosine
  Buffer<float> negated_;            // -query_ in f32
  Buffer<double> offsets_;           // [probes]
  Buffer<std::uint32_t> lists_;
  Buffer<float> tables_;  // [parts, codewords]
  Buffer<float> minima_;  // [parts]
  Buffer<std::uint8_t> bytes_;
  Buffer<std::uint16_t> sums_;          // byte sums of a list's first rows
  std::optional<CodeNorms> own_norms_;  // for lists without cached norms
  float block_norms_[block_rows];
  // Current query.
  std::size_t index_ = 0;
  x86::TableRange range_;
  float scale_ = 0;  // of the bytes; 0: not filled yet
  // Current list.
  const float* norms_ = nullptr;  // cached
  float min_norm_ = 0;
  float offset_ = 0;
  float cutoff_ = 0;
  std::uint16_t threshold_ = 0;
  Pass pass_ = Pass::all;
  std::size_t summed_ = 0;  // rows with valid sums_
  std::size_t count_ = 0;
  float scores_[2 * block_rows];
  std::uint32_t rows_[2 * block_rows];
};

}  // namespace nearwise::cpu

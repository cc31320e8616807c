// Codes in lists against one query, by sums of table entries: the list is read as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backend/cpu/kernels/part_sums.h"
#include "backend/cpu/lists/list_bound.h"
#include "backend/cpu/lists/list_collector.h"
#include "backend/cpu/x86/scan_codes.h"
#include "codes/code_norms.h"
#include "codes/codeword_tables.h"

namespace nearwise::cpu {

// Lists for one query after the other. Scores are of the corrected form. Not shared by threads.
//
// With r for the codewords of a row y in a list with centroid c, and t for its term (CodeNorms), the score is
//
//     -q'c' + t - q'r     euclidean metrics, t = |y'|^2 / 2: half the squared distance, up to a constant of the query
//     -qc - qr            inner_product
//     (-qc - qr) / t      cosine, t = |y| and q scaled to length 1: 1 less than the distance
//
// (list_bound.h): one number of query and list, one of the row, and a sum over tables of the query alone.
class TableScan {
 public:
  // Whether tables are looked up in registers, 64 rows at a time.
  static bool has_registers(const CpuStream& cpu);

  TableScan(CpuStream& cpu, const ListSearchArgs& args, const CodewordTables& codewords,
            const ListNumbers& numbers, const ListBound& bound, ListCollector& found);

  // Looks at every `step`-th list that the query probes, beginning with the `first`.
  void scan_query(std::size_t query, std::size_t first, std::size_t step);

 private:
  static constexpr std::size_t block_rows = 64;
  // Which rows a look at the bytes of their tables lets pass.
  enum class Pass : std::uint8_t { all, some, none };

  void fill_tables();
  void fill_offsets();
  void scan(std::size_t probe, std::size_t next);
  void begin_list(std::size_t list);
  void fill_bytes(double widest);
  void find_limit(const ListView& view);
  double most_of(std::uint16_t sum) const;
  double kth_quotient(const ListView& view, std::size_t rows);
  void set_threshold();
  void scan_block(const ListView& view, std::size_t first, std::uint32_t first_number);
  // Puts it into the list of what is handed over, or has it evaluated.
  void score_row(const std::byte* code, float term, std::uint32_t number);
  void hand_over();
  double factor() const;
  double blur() const;
  // The terms of rows [first, first + 64) of the list at hand, or null.
  const float* norms_of(const ListView& view, std::size_t first);
  x86::CodeScanArgs codes_of(const ListView& view, std::size_t first, const float* norms) const;
  // Asks for codes and terms of a block.
  void fetch(std::size_t probe, std::size_t first) const;

  CpuStream& cpu_;
  const ListSearchArgs& args_;
  const CodewordTables& codewords_;
  const ListNumbers& numbers_;
  const ListBound& bound_;
  ListCollector& found_;
  const PartSumsKernels& kernels_;
  const std::size_t parts_;
  const std::size_t table_words_;
  const bool with_bytes_;
  const bool with_norms_;
  const double longest_;             // no row is longer, with the centre subtracted
  const Lengths longest_codewords_;  // no codewords of a row are longer
  Buffer<double> query_;             // q', or scaled to length 1
  Buffer<float> negated_;            // the same in f32
  Buffer<double> offsets_;           // [probes] of query and list
  Buffer<std::uint32_t> lists_;
  Buffer<float> tables_;  // [parts, words]
  Buffer<float> leasts_;  // [parts]
  Buffer<std::uint8_t> bytes_;
  Buffer<std::uint16_t> sums_;          // of bytes, of the first rows of a list
  std::optional<CodeNorms> own_norms_;  // where a list has none kept
  float block_norms_[block_rows];
  // Of the query at hand.
  std::size_t index_ = 0;
  x86::TableRange range_;
  float scale_ = 0;  // of the bytes; 0: they have not been made
  // Of the list at hand.
  const float* norms_ = nullptr;  // kept ones
  float least_norm_ = 0;
  float offset_ = 0;
  float cutoff_ = 0;
  std::uint16_t threshold_ = 0;
  Pass pass_ = Pass::all;
  std::size_t summed_ = 0;  // rows whose sums there are
  std::size_t count_ = 0;
  float scores_[2 * block_rows];
  std::uint32_t rows_[2 * block_rows];
};

}  // namespace nearwise::cpu

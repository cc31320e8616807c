// Product codes in lists against one query, by sums of table entries: the list is read as it is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/part_sums.h"
#include "backend/cpu/list_collector.h"
#include "backend/cpu/x86/scan_codes.h"

namespace nearwise::cpu {

// Lists for one query after the other; metrics other than cosine. Scores are of the corrected form. Not shared by threads.
//
// With r for the codewords of a row in a list with centroid c, half its squared distance is, up to a constant of the query,
// |c'|^2 / 2 - q'c' + |r|^2 / 2 + (c - q) r (list_bound.h): one number of query and list, and a sum over tables of them. For
// inner_product it is -qc - qr, and the tables are those of the query alone.
class TableScan {
 public:
  // Whether tables are looked up in registers, 64 rows at a time.
  static bool has_registers(const CpuStream& cpu);

  TableScan(CpuStream& cpu, const ListSearchArgs& args, const ProductWords& words, const ListNumbers& numbers,
            ListCollector& found);

  void begin_query(std::size_t query);
  void scan(std::size_t list);

 private:
  static constexpr std::size_t block_rows = 64;
  // Which rows a look at the bytes of their tables lets pass.
  enum class Pass : std::uint8_t { all, some, none };

  void begin_list(std::size_t list);
  void fill_tables();
  void fill_bytes(double widest);
  void find_limit(const ListView& view);
  void set_threshold();
  void scan_block(const ListView& view, std::size_t first, std::uint32_t first_number);
  void hand_over();
  double blur() const;
  x86::CodeScanArgs codes_of(const ListView& view, std::size_t first) const;

  CpuStream& cpu_;
  const ListSearchArgs& args_;
  const ProductWords& words_;
  const ListNumbers& numbers_;
  ListCollector& found_;
  const PartSumsKernels& kernels_;
  const std::size_t parts_;
  const std::size_t table_words_;
  const bool with_bytes_;
  Buffer<double> query_;
  Buffer<float> difference_;  // that codewords are multiplied with
  Buffer<float> tables_;      // [parts, words]
  Buffer<float> leasts_;      // [parts]
  Buffer<std::uint8_t> bytes_;
  Buffer<std::uint16_t> sums_;  // of bytes, of the first rows of a list
  // Of the query and list at hand.
  std::size_t index_ = 0;
  float offset_ = 0;
  float cutoff_ = 0;
  x86::TableRange range_;
  float scale_ = 0;  // of the bytes; 0: they have not been made
  std::uint16_t threshold_ = 0;
  Pass pass_ = Pass::all;
  std::size_t summed_ = 0;  // rows whose sums there are
  std::size_t count_ = 0;
  float scores_[2 * block_rows];
  std::uint32_t rows_[2 * block_rows];
};

}  // namespace nearwise::cpu

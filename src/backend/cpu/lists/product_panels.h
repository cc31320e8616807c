// Product codes as panels for a scan: codewords are packed once, and a vector is assembled by copying them.
//
// The list's centroid is left out: it adds the same offset to all scores of query and list (list_bound.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/lists/list_bound.h"
#include "backend/cpu/rows/prepared_rows.h"
#include "backend/ops.h"
#include "codes/code_norms.h"
#include "codes/codeword_tables.h"

namespace nearwise::cpu {

class ProductPanels {
 public:
  ProductPanels(CpuStream& cpu, const ListCodec& codec, const CodewordTables& codewords,
                const ScanKernel& scan, Metric metric, std::span<const float> centre);
  static std::uint64_t bytes(const ScanKernel& scan, std::size_t dim);
  // Entries of the `tables` arguments below.
  static std::size_t table_size(const ListCodec& codec) { return codec.parts() << codec.bits; }

  const ResidualLengths& longest() const { return longest_; }

  // Tables of the packing error in the product of the query with every codeword: the sum over a code corrects
  // its score. packed, query: [dim], the latter minus the centre; tables: [table_size] out.
  void fill_corrections(const float* packed, const float* query, std::span<float> tables) const;
  // Sum of a code's table entries.
  float sum_of(std::span<const float> tables, const std::byte* code) const;

  // Packs codes [first, first + count) of a list into the first panels of `out`, with the biases of their
  // scores. norms: of all vectors of the list (CodeNorms), used as biases; or null. tables: [table_size]
  // scratch. Returns upper bounds of the lengths of their codewords.
  Lengths fill(const ListView& view, std::size_t list, std::size_t first, std::size_t count,
               const float* norms, std::span<float> tables, PackedRows& out) const;

 private:
  void encode_codewords(const ScanKernel& scan);
  float fill_tables(std::size_t list, std::span<float> tables) const;
  template <std::size_t bytes, unsigned bits>
  void copy_parts(const std::byte* codes, std::size_t count, PackedRows& out) const;
  template <std::size_t bytes>
  void copy_parts(const std::byte* codes, std::size_t count, PackedRows& out) const {
    codec_.bits == 8 ? copy_parts<bytes, 8>(codes, count, out) : copy_parts<bytes, 4>(codes, count, out);
  }
  template <unsigned bits>
  void add_tables(const std::byte* codes, std::size_t count, std::span<const float> tables, float bias,
                  float* out) const;
  Lengths longest_of(const std::byte* codes, std::size_t count) const;
  void copy_units(const std::byte* codes, std::size_t count, PackedRows& out) const;

  CpuStream& cpu_;
  const ListCodec codec_;
  const CodewordTables& codewords_;
  const Metric metric_;
  const std::span<const float> centre_;
  const std::size_t element_bytes_;  // packed
  const std::size_t unit_bytes_;
  Buffer<std::byte> packed_;      // packed codebooks
  Buffer<float> packed_columns_;  // the same, every part transposed
  Buffer<float> squares_;         // [parts, 2^bits] squared norms of packed codewords
  double max_loss_ = 0;           // maximum packing error of a codeword relative to its norm
  ResidualLengths longest_;
};

}  // namespace nearwise::cpu

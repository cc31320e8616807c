// Product quantization: a row is cut into parts, and of every part only the number of its nearest codeword is kept.
//
// 128 elements in 16 parts of 8 bits each become 16 bytes. What a code stands for is the row made of its codewords; the
// distance of a query from it is a sum of `parts` numbers out of a table that is made once per query.
//
// The same rows, options and seed give the same bytes at any number of threads, any memory limit and on every instruction
// set. Jégou, Douze, Schmid: Product quantization for nearest neighbor search (2011).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise {

struct ProductQuantizerOptions {
  std::size_t parts = 0;        // 1 to dim; 0: as many as make parts of at most 4 elements
  unsigned bits = 8;            // of a part's code: 4 (16 codewords per part) or 8 (256)
  std::size_t iterations = 25;  // of k-means, at most
  // Rows to train on, per codeword of a part: of more rows so many are drawn, by the context's seed. 0: all.
  std::size_t rows_per_centroid = 256;
};

// Trained, and not changed any more: threads may share it.
class ProductQuantizer {
 public:
  // k-means on every part. Throws Error(invalid_argument) where there are fewer rows than codewords of a part, and names
  // the first row with NaN or infinity. Rows are on the host.
  static ProductQuantizer train(const Context& context, RowsView rows,
                                const ProductQuantizerOptions& options = {});

  // codebooks: part after part, each [2^bits, part_dim(part)], hence 2^bits * dim finite numbers.
  static ProductQuantizer from_codebooks(std::size_t dim, std::size_t parts, unsigned bits,
                                         std::span<const float> codebooks);

  std::size_t dim() const { return dim_; }
  std::size_t parts() const { return parts_; }
  unsigned bits() const { return bits_; }
  std::size_t centroids() const { return std::size_t{1} << bits_; }  // codewords of a part
  // Bytes of a row's code. 8 bits: byte p is part p. 4 bits: part 2i is in the low half of byte i, part 2i + 1 in its
  // high half, which is 0 where there is no such part.
  std::size_t code_bytes() const;

  // The elements of part p are part_begin(p) to part_begin(p + 1). Lengths differ by at most one, longer ones come first.
  std::size_t part_begin(std::size_t part) const;
  std::size_t part_dim(std::size_t part) const;
  std::span<const float> codebook(std::size_t part) const;         // [2^bits, part_dim(part)]
  std::span<const float> codebooks() const { return codebooks_; }  // of all parts, one after the other

  // [rows, code_bytes]. The codeword of a part is the one that knn with k = 1 finds among its codebook: the nearest, and
  // the lower number in a tie.
  Matrix<std::uint8_t> encode(const Context& context, RowsView rows) const;

  // The rows that codes stand for, [codes, dim].
  Matrix<float> decode(const Context& context, MatrixView<const std::uint8_t> codes) const;

  // [queries, parts * 2^bits]: entry p * 2^bits + c is the squared distance (sqeuclidean) or the product (inner_product) of
  // part p of the query and codeword c of that part, in f64 and rounded to f32. The entries that a code names add up to
  // the distance of the query from the decoded row.
  Matrix<float> tables(const Context& context, RowsView queries, Metric metric = Metric::sqeuclidean) const;

  // The mean over all rows of the squared distance from what their code stands for.
  double error(const Context& context, RowsView rows) const;

 private:
  ProductQuantizer(std::size_t dim, std::size_t parts, unsigned bits, std::vector<float> codebooks);

  std::size_t dim_;
  std::size_t parts_;
  unsigned bits_;
  std::vector<float> codebooks_;
};

// Atomic and durable, in the container of docs/format.md (kind "product_quantizer").
void save(const ProductQuantizer& quantizer, const std::filesystem::path& path,
          const std::map<std::string, std::string>& provenance = {});
// Checksums and numbers are verified: damage is Error(corrupt). One of rotated rows is Error(invalid_argument).
ProductQuantizer load_product_quantizer(const std::filesystem::path& path);

}  // namespace nearwise

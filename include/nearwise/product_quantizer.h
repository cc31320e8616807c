// Product quantization: a vector is split into parts, and each part is replaced by the number of its nearest
// codeword.
//
// 128 dimensions in 16 parts of 8 bits give 16 bytes. The reconstruction concatenates the codewords; the
// distance of a query to it is a sum of `parts` entries of a table computed once per query.
//
// The same vectors, options and seed give the same bytes at any thread count and memory limit and on every
// instruction set. Jégou, Douze, Schmid: Product quantization for nearest neighbor search (2011).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/export.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

struct ProductQuantizerOptions {
  std::size_t parts = 0;        // 1 to dim; 0: parts of at most 4 dimensions
  unsigned bits = 8;            // per part: 4 (16 codewords) or 8 (256)
  std::size_t iterations = 25;  // of k-means, at most
  // Training vectors per codeword, drawn with the context's seed; 0: all.
  std::size_t rows_per_centroid = 256;
};

// Immutable after training: threads may share it.
class ProductQuantizer {
 public:
  // k-means on every part. Throws Error(invalid_argument) if there are fewer vectors than codewords per part,
  // or naming the first vector with NaN or infinity. Vectors are on the host.
  static ProductQuantizer train(const Context& context, RowsView rows,
                                const ProductQuantizerOptions& options = {});

  // codebooks: by part, each [2^bits, part_dim(part)], in all 2^bits * dim finite numbers.
  static ProductQuantizer from_codebooks(std::size_t dim, std::size_t parts, unsigned bits,
                                         std::span<const float> codebooks);

  std::size_t dim() const { return dim_; }
  std::size_t parts() const { return parts_; }
  unsigned bits() const { return bits_; }
  std::size_t centroids() const { return std::size_t{1} << bits_; }  // codewords of a part
  // Bytes of a row's code. 8 bits: byte p is part p. 4 bits: part 2i is in the low half of byte i, part 2i +
  // 1 in its high half, which is 0 where there is no such part.
  std::size_t code_bytes() const;

  // Part p has elements [part_begin(p), part_begin(p + 1)). Sizes differ by at most one, larger parts come
  // first.
  std::size_t part_begin(std::size_t part) const;
  std::size_t part_dim(std::size_t part) const;
  std::span<const float> codebook(std::size_t part) const;         // [2^bits, part_dim(part)]
  std::span<const float> codebooks() const { return codebooks_; }  // of all parts, consecutive

  // [rows, code_bytes]. The codeword of a part is the nearest of its codebook by knn with k = 1, the lower
  // number in a tie.
  Matrix<std::uint8_t> encode(const Context& context, RowsView rows) const;

  // Reconstructions, [codes, dim].
  Matrix<float> decode(const Context& context, MatrixView<const std::uint8_t> codes) const;

  // [queries, parts * 2^bits]: entry p * 2^bits + c is the squared distance (sqeuclidean) or the product
  // (inner_product) of part p of the query and codeword c of that part, in f64 and rounded to f32. The
  // entries that a code selects add up to the distance of the query to the reconstruction.
  Matrix<float> tables(const Context& context, RowsView queries, Metric metric = Metric::sqeuclidean) const;

  // Mean squared distance of the vectors to their reconstructions.
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
// Checksums and numbers are verified: damage is Error(corrupt). A file with a rotation is
// Error(invalid_argument).
ProductQuantizer load_product_quantizer(const std::filesystem::path& path);

}  // namespace nearwise

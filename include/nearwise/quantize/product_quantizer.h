// Product quantization (PQ): a vector is split into parts, and each part is replaced by the index of its
// nearest codeword.
//
// 128 dimensions in 16 parts of 8 bits become 16 bytes. A code decodes to the concatenation of its codewords;
// the distance of a query to it is a sum of `parts` entries of a table that is computed once per query.
//
// The same vectors, options and seed give the same bytes for any number of threads, any memory limit and
// every instruction set. Jégou, Douze, Schmid: Product quantization for nearest neighbor search (2011).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/export.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

struct ProductQuantizerOptions {
  std::optional<std::size_t> parts = {};  // 1 to dim; default: parts of at most 4 dimensions
  unsigned bits = 8;                      // per part: 4 (16 codewords) or 8 (256)
  std::size_t iterations = 25;            // of k-means, at most
  // Vectors to train on, drawn by the context's seed; at least one per codeword. Default: 256 per codeword.
  std::optional<std::size_t> training_rows = {};
};

// Immutable: threads may share it.
class ProductQuantizer {
 public:
  // Runs k-means on every part. Throws Error(invalid_argument) for fewer vectors than codewords of a part,
  // or naming the first vector with NaN or infinity. `rows` must be on the host.
  static ProductQuantizer train(const Context& context, RowsView rows,
                                const ProductQuantizerOptions& options = {});

  // codebooks: part after part, each [2^bits, part_dim(part)]; 2^bits * dim finite numbers in all.
  static ProductQuantizer from_codebooks(std::size_t dim, std::size_t parts, unsigned bits,
                                         std::span<const float> codebooks);

  std::size_t dim() const { return dim_; }
  std::size_t parts() const { return parts_; }
  unsigned bits() const { return bits_; }
  std::size_t centroids() const { return std::size_t{1} << bits_; }  // codewords per part
  // Bytes per code. 8 bits: byte p is part p. 4 bits: part 2i is the low half of byte i, part 2i + 1 its high
  // half, which is 0 if there is no such part.
  std::size_t code_bytes() const;

  // Part p has the dimensions [part_begin(p), part_begin(p + 1)). Lengths differ by at most one, longer ones
  // first.
  std::size_t part_begin(std::size_t part) const;
  std::size_t part_dim(std::size_t part) const;
  std::span<const float> codebook(std::size_t part) const;         // [2^bits, part_dim(part)]
  std::span<const float> codebooks() const { return codebooks_; }  // of all parts, concatenated

  // [rows, code_bytes]. Each part gets its nearest codeword, the lower index in a tie (the result of knn with
  // k = 1).
  Matrix<std::uint8_t> encode(const Context& context, RowsView rows) const;

  // The decoded vectors, [codes, dim].
  Matrix<float> decode(const Context& context, MatrixView<const std::uint8_t> codes) const;

  // Distance tables, [queries, parts * 2^bits]: entry p * 2^bits + c is the squared distance (sqeuclidean) or
  // the inner product of part p of the query and codeword c of that part, computed in f64 and rounded to f32.
  // The entries selected by a code add up to the distance of the query to the decoded vector. Throws
  // Error(invalid_argument) for other metrics.
  Matrix<float> tables(const Context& context, RowsView queries, Metric metric = Metric::sqeuclidean) const;

  // Mean squared reconstruction error over all rows.
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
// Verifies checksums and values: throws Error(corrupt) for a damaged file, Error(invalid_argument) for an
// optimized product quantizer.
ProductQuantizer load_product_quantizer(const std::filesystem::path& path);

}  // namespace nearwise

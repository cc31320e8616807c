// Additive quantization (LSQ): a vector is approximated by the sum of one codeword from each codebook, each
// of the vector's full dimension.
//
// Unlike product quantization, encoding is a search: codes by local search with perturbations, codewords by
// least squares, in turn. 7 codebooks give codes of 8 bytes, 15 give 16: the last byte quantizes the norm of
// the reconstruction, which distance tables need.
//
// The code of a vector depends on its elements, the codebooks, the options and the context's seed, not on
// other vectors, threads, memory limit or instruction set. Martinez, Clement, Hoos, Little: Revisiting
// additive quantization (2016); Martinez, Zakhmi, Hoos, Little: LSQ++ (2018).
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
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

struct AdditiveQuantizerOptions {
  std::size_t codebooks = 7;   // 1 to 32, each of 256 codewords
  std::size_t rounds = 25;     // of codeword and code updates; 0: the initial residual quantizer
  std::size_t iterations = 8;  // of local search in every round
  // Training vectors per codeword, drawn with the context's seed; 0: all.
  std::size_t rows_per_centroid = 256;
};

// Effort of encoding. An iteration perturbs some codes at random, improves one code after the other with the
// rest fixed, and keeps the result if it is the best so far. The first iteration starts from the codes of a
// residual quantizer.
struct AdditiveEncodeOptions {
  std::size_t iterations = 16;  // at least 1
  std::size_t passes =
      4;  // over all codes in every iteration, at most; fewer where nothing improves any more
  std::size_t perturbed = 4;  // codes changed at random, at most all
};

struct AdditiveSearchOptions {
  Metric metric = Metric::sqeuclidean;  // or inner_product
};

// Immutable after training: threads may share it.
class AdditiveQuantizer {
 public:
  static constexpr std::size_t most_codebooks = 32;
  static constexpr std::size_t centroids = 256;  // codewords of a codebook

  // Starts from a residual quantizer; returns the round with the smallest error on the training vectors.
  // Throws Error(invalid_argument) for fewer than 256 vectors, or naming the first with NaN or infinity.
  // Vectors are on the host.
  static AdditiveQuantizer train(const Context& context, RowsView rows,
                                 const AdditiveQuantizerOptions& options = {});

  // codebooks: consecutive, each [256, dim]. norms: 256 ascending squared norms, selected by the last byte of
  // a code. All numbers are finite.
  static AdditiveQuantizer from_codebooks(std::size_t dim, std::span<const float> codebooks,
                                          std::span<const float> norms);

  std::size_t dim() const { return dim_; }
  std::size_t codebooks() const { return codewords_.size() / (centroids * dim_); }
  std::size_t code_bytes() const { return codebooks() + 1; }
  std::span<const float> codewords() const { return codewords_; }  // [codebooks, 256, dim]
  std::span<const float> norms() const { return norms_; }          // [256]

  // [rows, code_bytes]: byte i selects the codeword of codebook i; the last byte selects the nearest of
  // norms() to the squared norm of the reconstruction, the lower in a tie.
  Matrix<std::uint8_t> encode(const Context& context, RowsView rows,
                              const AdditiveEncodeOptions& options = {}) const;

  // Reconstructions, [codes, dim]: sums in f64 in codebook order, rounded once.
  Matrix<float> decode(const Context& context, MatrixView<const std::uint8_t> codes) const;

  // The best k of `codes` for every query, [queries, k], ids being code numbers: the smallest squared
  // distances to the reconstructions, or the largest inner products, the lower number in a tie. A distance is
  // the sum in f32 of one table entry per byte, in order: -2 <query, codeword> each, then |query|^2 plus the
  // quantized squared norm; so it has the error of that norm and can be negative. An inner product is a sum
  // of <query, codeword>, exact up to rounding. Padded with no_id if there are fewer than k codes. All codes
  // are scanned; they are on the host.
  Neighbors search(const Context& context, RowsView queries, MatrixView<const std::uint8_t> codes,
                   std::size_t k, const AdditiveSearchOptions& options = {}) const;

  // Mean squared distance of the vectors to their reconstructions.
  double error(const Context& context, RowsView rows, const AdditiveEncodeOptions& options = {}) const;

 private:
  AdditiveQuantizer(std::size_t dim, std::vector<float> codewords, std::vector<float> norms);

  std::size_t dim_;
  std::vector<float> codewords_;
  std::vector<float> norms_;
};

// Atomic and durable, in the container of docs/format.md (kind "additive_quantizer").
void save(const AdditiveQuantizer& quantizer, const std::filesystem::path& path,
          const std::map<std::string, std::string>& provenance = {});
// Checksums and numbers are verified: damage is Error(corrupt).
AdditiveQuantizer load_additive_quantizer(const std::filesystem::path& path);

}  // namespace nearwise

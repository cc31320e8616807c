// Additive quantization (LSQ): a vector is approximated by a sum of codewords, one from each codebook, all of
// full length.
//
// Codes are found by local search with random perturbations, codewords by least squares, in alternation. The
// error is lower than that of a product quantizer of the same size; training and encoding are slower.
//
// 7 codebooks make codes of 8 bytes, 15 codebooks codes of 16: the last byte is the quantized norm of the
// reconstruction, which distance tables need.
//
// The code of a vector depends on its elements, the codebooks, the options and the context's seed; not on
// other vectors, the number of threads, the memory limit or the instruction set. Martinez, Clement, Hoos,
// Little: Revisiting additive quantization (2016); Martinez, Zakhmi, Hoos, Little: LSQ++ (2018).
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
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

struct AdditiveQuantizerOptions {
  std::size_t codebooks = 7;   // 1 to 32, each of 256 codewords
  std::size_t rounds = 25;     // of new codewords and new codes; 0: a residual quantizer
  std::size_t iterations = 8;  // of the code search in each round
  // Vectors to train on, drawn by the context's seed; at least 256. Default: 256 per codeword, 65,536.
  std::optional<std::size_t> training_rows = {};
};

// Effort of the code search. An iteration perturbs some codes at random, optimizes one code at a time with
// the others fixed, and keeps the result if it improves. The first iteration starts from the codes of a
// residual quantizer.
struct AdditiveEncodeOptions {
  std::size_t iterations = 16;  // at least 1
  std::size_t passes = 4;     // over all codes in each iteration, at most; stops early when nothing improves
  std::size_t perturbed = 4;  // codes perturbed at random; all if there are fewer
};

struct AdditiveSearchOptions {
  Metric metric = Metric::sqeuclidean;  // or inner_product
};

// Immutable: threads may share it.
class AdditiveQuantizer {
 public:
  static constexpr std::size_t most_codebooks = 32;
  static constexpr std::size_t centroids = 256;  // codewords per codebook

  // Starts from a residual quantizer and returns the round with the lowest error on the training vectors.
  // Throws Error(invalid_argument) for fewer than 256 vectors, or naming the first one with NaN or infinity.
  // `rows` must be on the host.
  static AdditiveQuantizer train(const Context& context, RowsView rows,
                                 const AdditiveQuantizerOptions& options = {});

  // codebooks: concatenated, each [256, dim]. norms: the 256 levels of squared norms that the last byte
  // selects, in ascending order. All numbers are finite, and so is every sum of one codeword per codebook.
  static AdditiveQuantizer from_codebooks(std::size_t dim, std::span<const float> codebooks,
                                          std::span<const float> norms);

  std::size_t dim() const { return dim_; }
  std::size_t codebooks() const { return codewords_.size() / (centroids * dim_); }
  std::size_t code_bytes() const { return codebooks() + 1; }
  std::span<const float> codewords() const { return codewords_; }  // [codebooks, 256, dim]
  std::span<const float> norms() const { return norms_; }          // [256]

  // [rows, code_bytes]: byte i is the index of the codeword of codebook i; the last byte is the level of
  // norms() nearest to the squared norm of the reconstruction, the lower one in a tie.
  Matrix<std::uint8_t> encode(const Context& context, RowsView rows,
                              const AdditiveEncodeOptions& options = {}) const;

  // The decoded vectors, [codes, dim]: sums in f64, in the order of the codebooks, rounded once.
  Matrix<float> decode(const Context& context, MatrixView<const std::uint8_t> codes) const;

  // Exhaustive search over `codes`, which are on the host: [queries, k], best first, the lower index in a
  // tie; rows with fewer than k codes end in no_id. Distances are sums of f32 table entries in byte order:
  // -2 <query, codeword> per codebook, then |query|^2 plus the level of the squared norm; they deviate by the
  // quantization of the norm and may be below 0. Inner products are sums of <query, codeword>, exact up to
  // rounding.
  Neighbors search(const Context& context, RowsView queries, MatrixView<const std::uint8_t> codes,
                   std::size_t k, const AdditiveSearchOptions& options = {}) const;

  // Mean squared reconstruction error over all rows.
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
// Verifies checksums and values: throws Error(corrupt) for a damaged file.
AdditiveQuantizer load_additive_quantizer(const std::filesystem::path& path);

}  // namespace nearwise

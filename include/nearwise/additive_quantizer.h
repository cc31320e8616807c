// Additive quantization: what a code stands for is the sum of one codeword of each codebook, all of them as long as a row.
//
// A product quantizer whose parts overlap completely: encoding is a search, not a look-up. Codes are found by local search with perturbations (LSQ), codewords by least squares, in turn.
//
// 7 codebooks make codes of 8 bytes, 15 codebooks codes of 16: the last byte tells the length of the sum, without which
// distances could not be added up from tables.
//
// The code of a row depends on its elements, the codebooks, the options and the context's seed: not on the rows beside it, the
// number of threads, the memory limit or the instruction set. Martinez, Clement, Hoos, Little: Revisiting additive
// quantization (2016); Martinez, Zakhmi, Hoos, Little: LSQ++ (2018).
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
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace nearwise {

struct AdditiveQuantizerOptions {
  std::size_t codebooks = 7;   // 1 to 32, each of 256 codewords
  std::size_t rounds = 25;     // of new codewords and new codes in turn. 0: those of a residual quantizer
  std::size_t iterations = 8;  // of the search for codes in every round
  // Rows to train on, per codeword of a codebook: of more rows so many are drawn, by the context's seed. 0: all.
  std::size_t rows_per_centroid = 256;
};

// How hard codes are searched for. An iteration changes some codes at random, improves one code after the other while the rest
// stay, and keeps what is better than the best so far. The first one starts from the codes of a residual quantizer.
struct AdditiveEncodeOptions {
  std::size_t iterations = 16;  // at least 1
  std::size_t passes =
      4;  // over all codes in every iteration, at most; fewer where nothing improves any more
  std::size_t perturbed = 4;  // codes changed at random, or all where there are fewer
};

struct AdditiveSearchOptions {
  Metric metric = Metric::sqeuclidean;  // or inner_product
};

// Trained, and not changed any more: threads may share it.
class AdditiveQuantizer {
 public:
  static constexpr std::size_t most_codebooks = 32;
  static constexpr std::size_t centroids = 256;  // codewords of a codebook

  // Starts from a residual quantizer; returns the best of all that was measured on the rows it trained on. Throws
  // Error(invalid_argument) for fewer than 256 rows, and names the first row with NaN or infinity. Rows are on the host.
  static AdditiveQuantizer train(const Context& context, RowsView rows,
                                 const AdditiveQuantizerOptions& options = {});

  // codebooks: one after the other, each [256, dim]. norms: 256 numbers that do not fall, the squared lengths that the last
  // byte of a code tells apart. All numbers are finite.
  static AdditiveQuantizer from_codebooks(std::size_t dim, std::span<const float> codebooks,
                                          std::span<const float> norms);

  std::size_t dim() const { return dim_; }
  std::size_t codebooks() const { return codewords_.size() / (centroids * dim_); }
  std::size_t code_bytes() const { return codebooks() + 1; }
  std::span<const float> codewords() const { return codewords_; }  // [codebooks, 256, dim]
  std::span<const float> norms() const { return norms_; }          // [256]

  // [rows, code_bytes]: byte i is the number of the codeword of codebook i, the last byte that of the squared length of
  // their sum: the nearest of norms(), the lower in a tie.
  Matrix<std::uint8_t> encode(const Context& context, RowsView rows,
                              const AdditiveEncodeOptions& options = {}) const;

  // The rows that codes stand for, [codes, dim]: sums in f64 and the order of the codebooks, rounded once.
  Matrix<float> decode(const Context& context, MatrixView<const std::uint8_t> codes) const;

  // The best k of `codes` for every query, [queries, k], by the number of the code: the smallest squared distances from what
  // codes stand for, or the largest products with it, the lower number in a tie. A distance is the sum in f32 of an entry per
  // byte, in their order: -2 <query, codeword> each, and last |query|^2 plus the squared length that the code tells; hence
  // off by as much as that is, and possibly below 0. A product is a sum of <query, codeword>, and exact up to rounding. Rows
  // with fewer than k codes to show end in no_id. All codes are looked at; they are on the host.
  Neighbors search(const Context& context, RowsView queries, MatrixView<const std::uint8_t> codes,
                   std::size_t k, const AdditiveSearchOptions& options = {}) const;

  // The mean over all rows of the squared distance from what their code stands for.
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

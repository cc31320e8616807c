// How an inverted file stores a vector: unchanged, or as a code of its residual (vector minus centroid of its
// list). Elements of encoded vectors must not exceed 1e33 in magnitude.
#pragma once

#include <cstddef>
#include <optional>
#include <variant>

#include "nearwise/export.h"

namespace NEARWISE_EXPORT nearwise {

// Vectors as they are, in their own element type.
struct Flat {
  friend bool operator==(const Flat&, const Flat&) = default;
};

// Product codes (nearwise/quantize/product_quantizer.h).
struct Pq {
  std::optional<std::size_t> code_bytes = {};  // at most dim; default: dim / 8, at least 8 and at most 64
  unsigned bits = 8;                           // per part: 4 (two parts per byte) or 8

  friend bool operator==(const Pq&, const Pq&) = default;
};

// Additive codes by LSQ (nearwise/quantize/additive_quantizer.h). Lower error than Pq at the same size, but
// slower to train and to encode. One byte per codebook: no byte is needed for the norm, which the index
// computes from the code.
struct Lsq {
  std::size_t code_bytes = 8;          // codebooks: 1 to 32
  std::size_t rounds = 25;             // of training, as in AdditiveQuantizerOptions
  std::size_t train_iterations = 8;    // of the code search in each round
  std::size_t encode_iterations = 16;  // of the code search for vectors that are added

  friend bool operator==(const Lsq&, const Lsq&) = default;
};

using Encoding = std::variant<Flat, Pq, Lsq>;

}  // namespace nearwise

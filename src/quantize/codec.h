// Codec of an inverted file: how vectors are encoded, decoded and saved, one implementation per encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "codes/list_codec.h"
#include "io/container/container_reader.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/quantize/encoding.h"
#include "nearwise/quantize/product_quantizer.h"
#include "nearwise/types.h"

namespace nearwise::quantize {

// Immutable once trained: indexes and threads share it.
class Codec {
 public:
  Codec() = default;
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;
  virtual ~Codec() = default;

  virtual std::string_view name() const = 0;  // "flat", "pq" or "lsq"
  // The plain data that backends read, without centroids and tables.
  virtual ListCodec view() const = 0;
  // residuals: [n, dim], finite; codes: [n, code_bytes]. Flat has no codes: its vectors are stored as they
  // are.
  virtual void encode(const Context& context, const Matrix<float>& residuals,
                      const MatrixView<std::uint8_t>& codes) const = 0;
  // Working memory of encode().
  virtual std::uint64_t encode_bytes(const Context& /*context*/) const { return 0; }
  // Expected duration for shares of progress, as cluster::training_cost().
  virtual double encode_cost(std::size_t rows) const = 0;
  // The section "codewords" of a file; empty for flat.
  virtual MatrixView<const float> codewords() const { return {}; }
  // The settings that are saved in metadata (docs/format.md), and by which codecs are told apart.
  virtual nlohmann::json settings() const = 0;
  virtual const ProductQuantizer* product_quantizer() const { return nullptr; }

  bool equals(const Codec& other) const;
};

// Largest magnitude of a centroid, and of a codeword: a decoded vector is finite in f32, since 1e38 + 1e38
// (pq) and 1e38 + 32 * 3e36 (lsq) are below 3.4e38.
inline constexpr float max_centroid_value = 1e38F;
inline constexpr float max_product_value = 1e38F;
inline constexpr float max_additive_value = 3e36F;

// Iterations of the code search for added vectors, at most. A file with more would occupy a CPU for hours.
inline constexpr std::size_t max_encode_iterations = 65536;

// Position of the first value beyond +-limit (or NaN); values.size() if there is none.
std::size_t first_beyond(std::span<const float> values, float limit);

// Checks an encoding against the dimension and fills in defaults. Throws Error(invalid_argument).
Encoding resolve(const char* operation, const Encoding& encoding, std::size_t dim);

// Bytes per vector. The encoding is resolved here and below.
std::size_t code_bytes(const Encoding& encoding, std::size_t dim, ElementType type);

// Memory of train_codec, including the sample of residuals.
std::uint64_t codec_training_bytes(const Context& context, const RowsView& rows, const Encoding& encoding);

// Expected durations for shares of progress, as cluster::training_cost().
double codec_training_cost(const RowsView& rows, std::size_t lists, const Encoding& encoding);
// Of all rows, as Codec::encode_cost().
double encode_cost(const RowsView& rows, const Encoding& encoding);
// Of product codes with this many bits.
double product_encode_cost(std::size_t rows, std::size_t parts, unsigned bits, std::size_t dim);

// Trains on residuals of 256 vectors per codeword, drawn by the context's seed.
std::shared_ptr<const Codec> train_codec(const char* operation, const Context& context, const RowsView& rows,
                                         MatrixView<const float> centroids, Metric metric,
                                         const Encoding& encoding);

// Throws Error(corrupt) unless settings and codewords fit the dimension.
std::shared_ptr<const Codec> read_codec(const ContainerReader& reader, const nlohmann::json& settings,
                                        std::size_t dim);

// The implementations, for codec.cpp (product/product_codec.cpp, additive/additive_codec.cpp).
std::shared_ptr<const Codec> make_product_codec(ProductQuantizer quantizer);
std::shared_ptr<const Codec> make_additive_codec(std::size_t dim, std::span<const float> codewords,
                                                 std::size_t encode_iterations);

}  // namespace nearwise::quantize

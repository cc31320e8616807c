// Choice, training and loading of the codec of an inverted file.
#include "quantize/codec.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <variant>

#include "backend/stages.h"
#include "cluster/centroid_search.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/overloaded.h"
#include "io/container/metadata.h"
#include "nearwise/quantize/additive_quantizer.h"
#include "quantize/additive/additive_coding.h"
#include "quantize/additive/additive_training.h"
#include "quantize/product/train_codebooks.h"
#include "quantize/residuals.h"
#include "quantize/training_rows.h"

namespace nearwise::quantize {
namespace {

constexpr std::size_t rows_per_codeword = 256;

class FlatCodec final : public Codec {
 public:
  FlatCodec(std::size_t dim, ElementType type) : dim_(dim), type_(type) {}

  std::string_view name() const override { return "flat"; }
  ListCodec view() const override {
    return {
        .encoding = ListEncoding::flat, .dim = dim_, .type = type_, .code_bytes = dim_ * element_size(type_)};
  }
  void encode(const Context&, const Matrix<float>&, const MatrixView<std::uint8_t>&) const override {
    NEARWISE_ASSERT(false);
  }
  double encode_cost(std::size_t) const override { return 0; }
  nlohmann::json settings() const override {
    return {{"encoding", name()}, {"element_type", nearwise::name(type_)}};
  }

 private:
  std::size_t dim_;
  ElementType type_;
};

std::size_t default_code_bytes(std::size_t dim) {
  return std::min(dim, std::clamp<std::size_t>(dim / 8, 8, 64));
}

// A dimension is the shortest part: where parts of 4 bits do not fill the bytes, there are fewer of them.
std::size_t parts_of(const Pq& pq, std::size_t dim) { return std::min(dim, *pq.code_bytes * (8 / pq.bits)); }

std::size_t sample_rows(const Encoding& encoding) {
  return std::visit(Overloaded{[](const Flat&) { return std::size_t{0}; },
                               [](const Pq& pq) { return rows_per_codeword << pq.bits; },
                               [](const Lsq&) { return rows_per_codeword * AdditiveQuantizer::centroids; }},
                    encoding);
}

std::span<const float> all_of(const MatrixView<const float>& values) {
  return {values.data(), values.rows() * values.cols()};
}

void check_trained(const char* operation, std::span<const float> codewords, float limit) {
  require(first_beyond(codewords, limit) == codewords.size(),
          "{}: vectors must have magnitudes of at most {} for this encoding, got larger ones", operation,
          limit);
}

std::shared_ptr<const Codec> read_product_codec(const ContainerReader& reader, const nlohmann::json& settings,
                                                std::size_t dim, const MatrixView<const float>& codewords) {
  const std::uint64_t parts = read_number(settings, "parts", reader.source());
  const std::uint64_t bits = read_number(settings, "bits", reader.source());
  if (parts < 1 || parts > dim || (bits != 4 && bits != 8) || codewords.cols() != 1 ||
      codewords.rows() != dim << bits)
    fail(ErrorCode::corrupt, "{}: dim, parts, bits and codewords do not agree", reader.source());
  return make_product_codec(
      ProductQuantizer::from_codebooks(dim, parts, static_cast<unsigned>(bits), all_of(codewords)));
}

std::shared_ptr<const Codec> read_additive_codec(const ContainerReader& reader,
                                                 const nlohmann::json& settings, std::size_t dim,
                                                 const MatrixView<const float>& codewords) {
  constexpr std::size_t each = AdditiveQuantizer::centroids;
  const std::uint64_t iterations = read_number(settings, "encode_iterations", reader.source());
  if (iterations < 1 || iterations > max_encode_iterations || codewords.cols() != dim ||
      codewords.rows() < each || codewords.rows() % each != 0 ||
      codewords.rows() / each > AdditiveQuantizer::most_codebooks)
    fail(ErrorCode::corrupt, "{}: dim, encode_iterations and codewords do not agree", reader.source());
  return make_additive_codec(dim, all_of(codewords), iterations);
}

}  // namespace

bool Codec::equals(const Codec& other) const {
  const ListCodec mine = view();
  const ListCodec theirs = other.view();
  return mine.dim == theirs.dim && settings() == other.settings() &&
         std::ranges::equal(mine.codewords, theirs.codewords);
}

std::size_t first_beyond(std::span<const float> values, float limit) {
  const auto fits = [limit](float value) { return value >= -limit && value <= limit; };
  return static_cast<std::size_t>(std::ranges::find_if_not(values, fits) - values.begin());
}

Encoding resolve(const char* operation, const Encoding& encoding, std::size_t dim) {
  Encoding resolved = encoding;
  if (Pq* const pq = std::get_if<Pq>(&resolved)) {
    if (!pq->code_bytes) pq->code_bytes = default_code_bytes(dim);
    require(pq->bits == 4 || pq->bits == 8, "{}: bits must be 4 or 8, got {}", operation, pq->bits);
    require(*pq->code_bytes >= 1 && *pq->code_bytes <= dim,
            "{}: code_bytes must be 1 to {}, the dimension, got {}", operation, dim, *pq->code_bytes);
  }
  if (const Lsq* const lsq = std::get_if<Lsq>(&resolved)) {
    require(lsq->code_bytes >= 1 && lsq->code_bytes <= AdditiveQuantizer::most_codebooks,
            "{}: code_bytes must be 1 to {}, got {}", operation, AdditiveQuantizer::most_codebooks,
            lsq->code_bytes);
    require(lsq->train_iterations >= 1, "{}: train_iterations must be at least 1, got 0", operation);
    require(lsq->encode_iterations >= 1 && lsq->encode_iterations <= max_encode_iterations,
            "{}: encode_iterations must be 1 to {}, got {}", operation, max_encode_iterations,
            lsq->encode_iterations);
  }
  return resolved;
}

std::size_t code_bytes(const Encoding& encoding, std::size_t dim, ElementType type) {
  return std::visit(
      Overloaded{[&](const Flat&) { return dim * element_size(type); },
                 [](const Pq& pq) { return *pq.code_bytes; }, [](const Lsq& lsq) { return lsq.code_bytes; }},
      encoding);
}

std::uint64_t codec_training_bytes(const Context& context, const RowsView& rows, const Encoding& encoding) {
  if (std::holds_alternative<Flat>(encoding)) return 0;
  const std::size_t sampled = std::min(rows.rows(), sample_rows(encoding));
  const RowsView residuals(rows.data(), ElementType::f32, sampled, rows.dim(), rows.dim() * sizeof(float));
  const std::uint64_t sample_bytes = TrainingRows::bytes(rows, sampled) +
                                     sampled * (rows.dim() * sizeof(float) + sizeof(Id) + sizeof(float));
  if (const Lsq* const lsq = std::get_if<Lsq>(&encoding))
    return sample_bytes +
           additive_training_bytes(
               context, residuals,
               {.operation = "codec_training_bytes", .codebooks = lsq->code_bytes, .rounds = 1});
  const Pq& pq = std::get<Pq>(encoding);
  return sample_bytes +
         training_bytes(
             context, residuals,
             {.shape = {rows.dim(), parts_of(pq, rows.dim()), pq.bits, {}}, .iterations = 1, .initial = {}});
}

double codec_training_cost(const RowsView& rows, std::size_t lists, const Encoding& encoding) {
  if (std::holds_alternative<Flat>(encoding)) return 0;
  const RowsView sample = rows.slice(0, std::min(rows.rows(), sample_rows(encoding)));
  const double assigning = cluster::assignment_cost(sample, lists);
  if (const Lsq* const lsq = std::get_if<Lsq>(&encoding))
    return assigning + additive_training_cost(sample, {.operation = "codec_training_cost",
                                                       .codebooks = lsq->code_bytes,
                                                       .rounds = lsq->rounds,
                                                       .iterations = lsq->train_iterations});
  const Pq& pq = std::get<Pq>(encoding);
  return assigning + training_cost(sample, {.shape = {rows.dim(), parts_of(pq, rows.dim()), pq.bits, {}},
                                            .iterations = ProductQuantizerOptions().iterations,
                                            .initial = {}});
}

double product_encode_cost(std::size_t rows, std::size_t parts, unsigned bits, std::size_t dim) {
  const RowsView part(nullptr, ElementType::f32, rows, divide_up(dim, parts), dim * sizeof(float));
  return static_cast<double>(parts) * cluster::assignment_cost(part, std::size_t{1} << bits);
}

double encode_cost(const RowsView& rows, const Encoding& encoding) {
  if (const Lsq* const lsq = std::get_if<Lsq>(&encoding))
    return additive_encode_cost(rows.rows(), rows.dim(), lsq->code_bytes, lsq->encode_iterations);
  if (const Pq* const pq = std::get_if<Pq>(&encoding))
    return product_encode_cost(rows.rows(), parts_of(*pq, rows.dim()), pq->bits, rows.dim());
  return 0;
}

std::shared_ptr<const Codec> train_codec(const char* operation, const Context& context, const RowsView& rows,
                                         MatrixView<const float> centroids, Metric metric,
                                         const Encoding& encoding) {
  if (std::holds_alternative<Flat>(encoding)) return std::make_shared<FlatCodec>(rows.dim(), rows.type());
  const double all = codec_training_cost(rows, centroids.rows(), encoding);
  const double assigning =
      cluster::assignment_cost(rows.slice(0, std::min(rows.rows(), sample_rows(encoding))), centroids.rows());
  Stages stages(context, operation);
  const ResidualSample sample(stages.next(assigning, all - assigning), rows, sample_rows(encoding), centroids,
                              metric);
  const Context training = stages.next(1, 0);
  const std::size_t count = sample.rows().rows();
  if (const Lsq* const lsq = std::get_if<Lsq>(&encoding)) {
    const AdditiveQuantizer trained = AdditiveQuantizer::train(training, sample.rows(),
                                                               {.codebooks = lsq->code_bytes,
                                                                .rounds = lsq->rounds,
                                                                .iterations = lsq->train_iterations,
                                                                .training_rows = count});
    check_trained(operation, trained.codewords(), max_additive_value);
    return make_additive_codec(rows.dim(), trained.codewords(), lsq->encode_iterations);
  }
  const Pq& pq = std::get<Pq>(encoding);
  ProductQuantizer trained = ProductQuantizer::train(
      training, sample.rows(), {.parts = parts_of(pq, rows.dim()), .bits = pq.bits, .training_rows = count});
  check_trained(operation, trained.codebooks(), max_product_value);
  return make_product_codec(std::move(trained));
}

std::shared_ptr<const Codec> read_codec(const ContainerReader& reader, const nlohmann::json& settings,
                                        std::size_t dim) {
  const std::string& source = reader.source();
  const std::string encoding = read_text(settings, "encoding", source);
  if (encoding == "flat") {
    const std::string type = read_text(settings, "element_type", source);
    try {
      return std::make_shared<FlatCodec>(dim, parse_element_type(type));
    } catch (const Error& error) {
      fail(ErrorCode::corrupt, "{}: metadata: {}", source, error.what());
    }
  }
  const bool product = encoding == "pq";
  if (!product && encoding != "lsq")
    fail(ErrorCode::corrupt, "{}: metadata: encoding must be flat, pq or lsq, found '{}'", source, encoding);
  const MatrixView<const float> codewords = reader.section("codewords").rows<float>();
  const float limit = product ? max_product_value : max_additive_value;
  const std::size_t bad = first_beyond(all_of(codewords), limit);
  if (bad != all_of(codewords).size())
    fail(ErrorCode::corrupt, "{}: codewords: magnitudes of at most {} expected, {} found at element {}",
         source, limit, all_of(codewords)[bad], bad);
  return product ? read_product_codec(reader, settings, dim, codewords)
                 : read_additive_codec(reader, settings, dim, codewords);
}

}  // namespace nearwise::quantize

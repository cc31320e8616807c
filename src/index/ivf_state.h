// What an inverted file is made of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codes/codeword_tables.h"
#include "codes/list_codec.h"
#include "core/checked.h"
#include "index/cached_norms.h"
#include "index/inverted_lists.h"
#include "io/container/container_reader.h"
#include "nearwise/ivf.h"
#include "nearwise/product_quantizer.h"
#include "ops/knn_plan.h"

namespace nearwise {

namespace index {

// Centroids and codewords are no larger, so that the sum of two is a number.
inline constexpr float most_value = 1e38F;
// Codewords of additive codes, of which up to 32 are added to a centroid.
inline constexpr float most_additive_value = 3e36F;

// Of a measurement, and what the candidates of a search are given for.
inline constexpr std::size_t calibration_neighbors = 10;
inline constexpr std::size_t default_candidates = 100;

// Rows whose residuals are there at the same time.
inline constexpr std::size_t added_batch_rows = 32768;

void check_options(const CalibrationOptions& options);

// Where the first larger one stands, or their number.
inline std::size_t first_too_large(std::span<const float> values, float most = most_value) {
  const auto fits = [most](float value) { return value >= -most && value <= most; };
  return static_cast<std::size_t>(std::ranges::find_if_not(values, fits) - values.begin());
}

}  // namespace index

struct Ivf::State {
  Metric metric = Metric::sqeuclidean;
  ElementType type = ElementType::f32;         // of the encoded vectors
  Matrix<float> centroids;                     // [lists, dim]
  std::optional<ProductQuantizer> quantizer;   // of residuals; none: flat
  std::vector<std::size_t> part_begins;        // of the quantizer
  std::vector<float> additive_codewords = {};  // of additive codes of it instead, [code_bytes, 256, dim]
  std::size_t additive_iterations = 0;         // of the search for such a code
  std::vector<float> centre;                   // of the data, for the scan
  std::size_t probes = 1;
  std::size_t candidates = index::default_candidates;
  std::optional<Calibration> measured = {};
  std::map<std::string, std::string> provenance = {};
  Id next_id = 0;  // one above the largest
  std::shared_ptr<MemoryBudget> budget;
  std::shared_ptr<const ContainerReader> file;  // that lists were borrowed from
  index::InvertedLists rows;
  std::optional<CodewordTables> tables = {};       // of the codes; made when the index is
  std::unique_ptr<index::CachedNorms> norms = {};  // where scores have them

  bool has_codes() const { return quantizer.has_value() || !additive_codewords.empty(); }

  // Proportional to k: more results need more re-ranked candidates.
  std::size_t candidates_for(std::size_t k) const {
    if (k <= index::calibration_neighbors) return candidates;
    // Beyond what any index holds, where the product below might overflow, k will do.
    if (k > max_shard_rows) return k;
    return std::max(k, divide_up(candidates * k, index::calibration_neighbors));
  }

  // Encodes residuals [rows, dim] into codes [rows, code_bytes].
  void encode(const Context& context, const Matrix<float>& left, const MatrixView<std::uint8_t>& codes) const;

  // To be called before rows of a list come or go.
  void list_changes(std::size_t list) noexcept {
    if (norms) norms->discard(list);
  }

  ListCodec codec() const {
    return {.dim = centroids.cols(),
            .type = type,
            .code_bytes = rows.code_bytes(),
            .part_begins = part_begins,
            .codebooks = quantizer ? quantizer->codebooks() : std::span<const float>(),
            .bits = quantizer ? quantizer->bits() : 8,
            .centroids = centroids,
            .tables = tables ? &*tables : nullptr,
            .additive_codewords = additive_codewords};
  }
};

}  // namespace nearwise

// The members of an inverted file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codes/codeword_tables.h"
#include "codes/list_codec.h"
#include "core/checked.h"
#include "index/cached_norms.h"
#include "index/inverted_lists.h"
#include "io/container/container_reader.h"
#include "nearwise/ivf.h"
#include "ops/knn_plan.h"
#include "quantize/codec.h"

namespace nearwise {

namespace index {

// Calibration measures the recall of this many neighbours; the default candidates are for up to as many.
inline constexpr std::size_t calibration_neighbors = 10;
inline constexpr std::size_t default_candidates = 100;

// Vectors that add() encodes at a time; bounds the memory of their residuals.
inline constexpr std::size_t added_batch_rows = 32768;

void check_options(const CalibrationOptions& options);
// Of the budget, beside the index.
std::uint64_t calibration_bytes(const RowsView& rows, std::size_t queries);
// Expected duration for shares of progress, as cluster::training_cost().
double calibration_cost(const RowsView& rows, const CalibrationOptions& options);

}  // namespace index

struct Ivf::State {
  Metric metric = Metric::sqeuclidean;
  Matrix<float> centroids;  // [lists, dim]
  std::shared_ptr<const quantize::Codec> codec;
  std::vector<float> centre;  // of the data, subtracted by scans for precision
  std::size_t probes = 1;
  std::size_t candidates = index::default_candidates;
  std::optional<Calibration> calibration = {};
  std::map<std::string, std::string> provenance = {};
  Id next_id = 0;
  std::shared_ptr<MemoryBudget> budget;
  std::shared_ptr<const ContainerReader> file = {};  // mapped file that lists refer to
  index::InvertedLists rows;
  std::optional<CodewordTables> tables = {};       // none for flat
  std::unique_ptr<index::CachedNorms> norms = {};  // none where scores need none

  bool is_flat() const { return codec->view().is_flat(); }

  // Proportional to k above calibration_neighbors.
  std::size_t candidates_for(std::size_t k) const {
    if (k <= index::calibration_neighbors) return candidates;
    // No index holds more vectors, and the product below might overflow.
    if (k > max_shard_rows) return k;
    return std::max(k, divide_up(candidates * k, index::calibration_neighbors));
  }

  // Called before the vectors of a list change.
  void list_changes(std::size_t list) noexcept {
    if (norms) norms->discard(list);
  }

  ListCodec view() const {
    ListCodec view = codec->view();
    view.centroids = centroids;
    view.tables = tables ? &*tables : nullptr;
    return view;
  }
};

struct IvfInternals {
  using State = Ivf::State;
  static const State& state_of(const Ivf& index) { return *index.state_; }
};

}  // namespace nearwise

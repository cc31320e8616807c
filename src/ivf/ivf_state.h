// The members of an inverted file.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/list_search.h"
#include "codes/codeword_tables.h"
#include "codes/list_codec.h"
#include "core/checked.h"
#include "index/id_table.h"
#include "index/index_lock.h"
#include "index/published.h"
#include "io/container/container_reader.h"
#include "ivf/resident_lists.h"
#include "ivf/storage/cached_norms.h"
#include "ivf/storage/inverted_lists.h"
#include "ivf/storage/vector_store.h"
#include "nearwise/ivf.h"
#include "ops/knn_plan.h"
#include "ops/memory_limit.h"
#include "quantize/codec.h"

namespace nearwise {

namespace ivf {

// Calibration measures the recall of this many neighbours; the default candidates are for up to as many.
inline constexpr std::size_t calibration_neighbors = 10;
inline constexpr std::size_t default_candidates = 100;

// Vectors that add() encodes at a time; bounds the memory of their residuals.
inline constexpr std::size_t added_batch_rows = 32768;

void check_options(const CalibrationOptions& options);
// Of the budget, in addition to the index.
std::uint64_t calibration_bytes(const RowsView& rows, const CalibrationOptions& options);
// Candidates of a search for k neighbours: proportional to k above calibration_neighbors.
inline std::size_t candidates_for(std::size_t calibrated, std::size_t k) {
  if (k <= calibration_neighbors) return calibrated;
  // No index holds more vectors, and the product below might overflow.
  if (k > max_shard_rows) return k;
  return std::max(k, divide_up(calibrated * k, calibration_neighbors));
}
// Probes of a search for k neighbours, 1 to `lists`. Between two calibrated k they grow with log k, so that
// they are rather too many; beyond the largest one they are proportional to k.
std::size_t calibrated_probes(const Calibration& calibration, std::size_t k, std::size_t lists);
// Expected duration for shares of progress, as cluster::training_cost().
double calibration_cost(const RowsView& rows, const CalibrationOptions& options);

}  // namespace ivf

// Calls that read the members below `lock` hold it. Those above never change.
struct Ivf::State {
  Metric metric = Metric::sqeuclidean;
  Matrix<float> centroids;  // [lists, dim]
  std::shared_ptr<const quantize::Codec> codec;
  std::vector<float> centre;  // of the data, subtracted by scans for precision
  std::shared_ptr<MemoryBudget> budget;
  std::shared_ptr<const ContainerReader> file = {};  // mapped file that lists refer to
  ivf::VectorStore vectors = {};
  std::optional<CodewordTables> tables = {};  // none for flat

  mutable index::IndexLock lock = {};
  std::size_t probes = 1;
  std::size_t candidates = ivf::default_candidates;
  std::optional<Calibration> calibration = {};
  std::map<std::string, std::string> provenance = {};
  Id next_id = 0;
  std::uint64_t next_file_row = 0;  // of vectors in a file: one above the largest row ever added
  ivf::InvertedLists rows;
  std::unique_ptr<ivf::CachedNorms> norms = {};           // none where scores need none
  mutable index::Published<index::IdTable> table = {};    // lists of ids; made when it is first needed
  mutable index::Published<index::IdTable> numbers = {};  // entry_numbers(); dropped by changes
  mutable std::atomic<std::size_t> number_lookups = 0;    // since the last change

  mutable ivf::ResidentLists resident = {};  // made by to()

  mutable std::atomic<const void*> checked_rows = nullptr;  // last rows to re-rank by that passed the check
  // For callers that must not wait for the lock: of the last change that is complete.
  std::atomic<std::size_t> published_size = 0;
  std::atomic<Id> published_next_id = 0;

  bool is_flat() const { return codec->view().is_flat(); }

  std::size_t probes_for(std::size_t k) const {
    return calibration ? ivf::calibrated_probes(*calibration, k, rows.lists()) : probes;
  }

  std::size_t candidates_for(std::size_t k) const { return ivf::candidates_for(candidates, k); }

  // The lists of all ids. Any number of threads may call it.
  const index::IdTable& ids() const;

  // The number of each entry, counted through all lists, by its id: 4 bytes per vector, more for sparse ids.
  // Null if it does not pay off for this many lookups, or does not fit half of the memory limit. Any number
  // of threads may call it.
  const index::IdTable* entry_numbers(std::size_t lookups) const;

  struct Place {
    std::size_t list;
    std::size_t row;
  };
  std::optional<Place> find(Id id) const;

  // Vectors of entries: kept, or those of flat lists.
  RerankVectors rerank_vectors() const {
    return {.kept = is_flat() ? KeptVectors() : vectors.view(), .rows = {}};
  }

  // Called after a change, within its Writing.
  void publish() noexcept {
    published_size = rows.rows();
    published_next_id = next_id;
    numbers.reset();
    number_lookups = 0;
  }

  // Called before the vectors of a list change.
  void list_changes(std::size_t list) noexcept {
    if (norms) norms->discard(list);
  }

  ivf::ResidentLists::Source resident_source() const {
    return {.version = rows.version(),
            .codec = view(),
            .metric = metric,
            .centre = centre,
            .lists = rows.views(),
            .kept = rerank_vectors().kept};
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
  static Calibration calibrate(Ivf& index, const Context& context, const RowsView& rows,
                               const CalibrationOptions& options, MemoryCheck check);
  // Without entries; its memory is counted by `budget`.
  static Ivf empty_copy(const State& state, const std::shared_ptr<MemoryBudget>& budget);
};

}  // namespace nearwise

// Inverted file index (IVF): vectors are assigned to the lists of a k-means clustering, and a search scans
// the lists whose centroids are nearest to the query.
//
// The vectors are stored as they are (Flat) or as codes of their residuals (Pq, Lsq; see
// nearwise/quantize/encoding.h).
//
// Results are deterministic: the probed lists are the ones exact search finds among the centroids, and of
// their vectors the k best are returned, best first, ties by lower id. With codes, the best candidates are
// re-ranked by the vectors that the index keeps. The bytes are the same on every instruction set, for every
// number of threads, and however queries are grouped into batches; only under a filter, the number of queries
// of a call may decide which of two methods is used (Ivf::explain).
//
// build() indexes all vectors and calibrates the number of probes. train() returns an empty index; add()
// fills it, with the caller's ids or consecutive ones. Memory is charged to the context of train() or
// build().
//
// Any thread may call any method at any time. A method that reads (every const one, such as search) sees the
// index as it was before or after each call that changes it, never a mixture. A change does most of its work
// while searches continue, then waits for running searches and applies its result; searches that start in the
// meantime wait. Changes and calibrate() run one at a time. A change that fails or is cancelled leaves the
// index unchanged. Two rules: do not move or destroy the index while it is in use; and in a progress callback
// of one of its methods, call no method other than size() and next_id(), which never wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/exact.h"
#include "nearwise/export.h"
#include "nearwise/filter.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/quantize/encoding.h"
#include "nearwise/quantize/product_quantizer.h"
#include "nearwise/recall_estimate.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

// What an index of codes keeps of each vector, for re-ranking and get(). Flat lists hold the vectors anyway.
enum class VectorStorage : std::uint8_t {
  keep,  // the vector itself, in the element type of the training vectors
  f16,   // rounded to half precision; magnitudes above 65504 are refused
  u8,    // rounded to 255 steps: an offset per dimension and one step size, from the training vectors
  none,  // nothing: searches return the distances to decoded vectors
  file,  // its row number in IvfOptions::vector_file, which is mapped
};
std::string_view name(VectorStorage storage);
VectorStorage parse_vector_storage(std::string_view text);

struct IvfOptions {
  Metric metric = Metric::sqeuclidean;
  std::optional<std::size_t> lists = {};  // default: about 4 sqrt(vectors), with at least 39 vectors per list
  std::size_t iterations = 10;            // of k-means, at most
  // Vectors that k-means is trained on, drawn with the context's seed; at least one per list. Default: 256
  // per list. Pq and Lsq always train on the residuals of 256 vectors per codeword of a codebook.
  std::optional<std::size_t> training_rows = {};
  Encoding encoding = Flat{};
  VectorStorage vectors = VectorStorage::keep;
  // For VectorStorage::file: a file of vectors (vector_file.h), which must not change. Added vectors must be
  // rows of it: without ids, the rows after those added before; with ids, the rows with these numbers.
  std::filesystem::path vector_file = {};
};

struct IvfSearchOptions {
  std::optional<std::size_t> probes = {};  // lists to scan; default: Ivf::probes(k)
  // The best candidates are re-ranked by the distance to the vectors that the index keeps, which is the
  // distance reported. If it keeps none, or with codes_only, distances are those to the decoded vectors.
  bool codes_only = false;
  // Vectors to re-rank by instead, in memory or in a mapped file: row i is the vector of id i.
  RowsView rerank = {};
  std::optional<std::size_t> candidates = {};  // to re-rank, at least k; default: Ivf::candidates(k)
  // Ids that may be returned. Lists without any of them are skipped. Unless `probes` is set, each query
  // probes lists until it has scanned `scanned` allowed vectors; where it is faster, all allowed vectors are
  // compared exactly instead (Ivf::explain). Ids that a per-query list allows are always compared exactly. An
  // id denied by a per-query list costs about as much as one more neighbour if it is near the query, and next
  // to nothing otherwise. Results are padded if fewer than k are allowed.
  Filter filter = {};
  // Under a filter: allowed vectors to scan per query; default: Ivf::scanned().
  std::optional<std::size_t> scanned = {};
};

struct IvfRangeOptions {
  std::optional<std::size_t> probes = {};  // lists to scan; default: Ivf::probes()
  Filter filter = {};                      // ids that may be returned
};

// How a search under a filter runs.
struct IvfSearchPlan {
  bool exact = false;       // all allowed vectors are compared exactly; otherwise lists are probed
  std::size_t allowed = 0;  // vectors of the index that the filter allows
  std::size_t lists = 0;    // lists that hold at least one of them
  std::size_t probes = 0;   // how many of these a query probes if they are of average size; 0 if exact
  std::size_t scanned = 0;  // allowed vectors to scan for each query
  // Estimated time of a query on one thread, in ns; exact_cost is infinite if no vectors are kept.
  double exact_cost = 0;
  double lists_cost = 0;
};

struct CalibrationOptions {
  double target_recall = 0.9;   // of the k nearest neighbours
  std::size_t queries = 500;    // vectors of the index to search for, drawn by the context's seed
  bool rerank = true;           // false: for searches with codes_only
  std::size_t largest_k = 100;  // the recall is measured for k = 1, 10 and this one
};

// The recall of searches for k neighbours with this many probes, and Ivf::candidates(k).
struct RecallAtK {
  std::size_t k = 0;
  std::size_t probes = 0;
  RecallEstimate recall = {};
  RecallEstimate recall_without_rerank = {};

  friend bool operator==(const RecallAtK&, const RecallAtK&) = default;
};

// The recall of searches with the index's default probes and candidates. A query does not count as its own
// neighbour.
struct Calibration {
  std::size_t probes = 0;
  std::optional<std::size_t> candidates = {};  // none: without re-ranking
  RecallEstimate recall = {};
  RecallEstimate recall_without_rerank = {};  // with the same probes
  double target_recall = 0;
  std::size_t neighbors = 0;  // 10, or all other vectors if there are fewer
  std::size_t rows = 0;       // vectors in the index at the time of calibration
  // For k = 1, and for CalibrationOptions::largest_k if it is above `neighbors`; ascending. For other k,
  // probes are interpolated.
  std::vector<RecallAtK> other_k = {};

  // Whether the recall reaches the target for k neighbours, judged by the nearest calibrated k below and
  // above. False for k beyond the largest calibrated one, unless that one covers all vectors.
  bool reached(std::size_t k = 10) const;
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

class Ivf final {
 public:
  using SearchOptions = IvfSearchOptions;
  using RangeSearchOptions = IvfRangeOptions;

  // Throws Error(invalid_argument) if the options do not fit the vectors, or naming the first vector with NaN
  // or infinity. `rows` must be on the host.
  static Ivf train(const Context& context, RowsView rows, const IvfOptions& options = {});
  // train, add and calibrate.
  static Ivf build(const Context& context, RowsView rows, const IvfOptions& options = {},
                   const std::optional<CalibrationOptions>& calibration = CalibrationOptions());

  Ivf(Ivf&&) noexcept;
  Ivf& operator=(Ivf&&) noexcept;
  ~Ivf();

  // `rows` must be on the host; for Flat, in the element type of the training vectors. ids: one per vector,
  // distinct and not negative; empty: consecutive ids from next_id(). Returns how many vectors were added or
  // replaced. Throws Error(invalid_argument) naming the first vector with NaN or infinity. An index holds at
  // most 2^32 - 2 vectors.
  std::size_t add(const Context& context, RowsView rows, std::span<const Id> ids = {},
                  OnDuplicate on_duplicate = OnDuplicate::refuse);
  // Replaces the vectors with these ids. The index must hold every one of them.
  void update(const Context& context, std::span<const Id> ids, RowsView rows);
  // Removes every vector with one of these ids. Returns how many were removed. Their space is reused.
  std::size_t remove(const Context& context, std::span<const Id> ids);
  // Frees the space of removed vectors. Searches wait until it is done.
  void compact();

  bool contains(Id id) const;
  std::vector<Id> ids() const;  // of all vectors, ascending
  // The vectors with these ids [ids, dim], as the index keeps them, or decoded if it keeps none. They are
  // exactly those that were added if keeps_vectors(). Throws Error(invalid_argument) for an id that the index
  // does not hold.
  void get(std::span<const Id> ids, MatrixView<float> out) const;
  // The best k of the given candidates [queries, n] by the distance to the vectors that the index keeps, or
  // to decoded ones. Queries and candidates must be on the host. Ids that the index does not hold, and no_id,
  // are skipped.
  Neighbors rerank(const Context& context, RowsView queries, MatrixView<const Id> candidates,
                   std::size_t k) const;
  // Appends the vectors of an index with the same quantizers (from the same training) and no id in common.
  // Searches of this index wait until it is done.
  void merge(const Context& context, const Ivf& other);
  // An index with the same quantizers and no vectors.
  Ivf empty_copy() const;
  // A copy of the vectors [first, first + count) in list order, charged to the given context. Consecutive
  // parts merged into an empty copy give the whole index.
  Ivf part(const Context& context, std::size_t first, std::size_t count) const;
  // Centroids, codewords and settings are equal: one index can be merged into the other.
  bool has_same_quantizers(const Ivf& other) const;

  // Copies the lists to the context's device, charged to its budget, for searches with contexts of that
  // device: they then transfer queries and answers, and nothing that grows with the lists. After a change,
  // the next search makes a new copy, or runs without one if it no longer fits. Searches with
  // IvfSearchOptions::rerank, or with a filter for all queries or per-query allowed ids, also run without the
  // copy. If only the kept vectors do not fit, candidates are re-ranked on the host; if the rest does not
  // fit, throws Error(out_of_memory). A CPU context frees all copies.
  void to(const Context& context);
  std::uint64_t device_bytes(Place place) const;  // of the copy on this device; 0: there is none

  // [queries, k]; padded with no_id if the probed lists hold fewer than k vectors. `queries` must be on the
  // host.
  Neighbors search(const Context& context, RowsView queries, std::size_t k,
                   const IvfSearchOptions& options = {}) const;

  // All vectors of the probed lists within the radius, by the distance to the vectors that the index keeps,
  // or else to the decoded ones. Error(unsupported) on a CUDA device.
  RangeNeighbors range_search(const Context& context, RowsView queries, float radius,
                              const IvfRangeOptions& options = {}) const;
  // What search() would do for this many queries with these options. The filter must not have per-query
  // lists.
  IvfSearchPlan explain(const Context& context, std::size_t queries, std::size_t k,
                        const IvfSearchOptions& options) const;

  std::size_t size() const;  // vectors
  Id next_id() const;        // one above the largest id ever added
  bool is_changing() const;  // a change is running; another one would wait for it
  std::size_t dim() const;
  std::size_t lists() const;
  std::size_t list_size(std::size_t list) const;
  std::size_t code_bytes() const;    // per vector in the lists: of its code, or for Flat of the vector itself
  std::size_t vector_bytes() const;  // kept per vector for re-ranking; 0 for Flat and VectorStorage::none
  VectorStorage vectors() const;     // `keep` for Flat
  std::filesystem::path vector_file() const;  // absolute; empty unless vectors() is `file`
  bool keeps_vectors() const;                 // exactly as they were added
  Metric metric() const;
  MatrixView<const float> centroids() const;  // [lists, dim]
  std::string_view encoding() const;          // "flat", "pq" or "lsq"
  const ProductQuantizer* quantizer() const;  // of the residuals; null unless the encoding is Pq
  // [code_bytes, 256, dim], empty unless the encoding is Lsq. A vector decodes to the sum of its centroid and
  // one codeword of each codebook, added in f64 and rounded once.
  std::span<const float> additive_codewords() const;
  // Defaults of a search: estimates after train(), measured ones after calibrate(). For k beyond the largest
  // that was measured, both are proportional to k.
  std::size_t probes(std::size_t k = 10) const;
  std::size_t candidates(std::size_t k = 10) const;  // proportional to k above 10
  // Allowed vectors that a search under a filter scans for each query: as many vectors as a search with
  // probes(k) scans on average, but no fewer than it re-ranks. all_rows: of the index that this one is a part
  // of, whose parts may hold the vectors near a query unevenly; default: size().
  std::size_t scanned(std::size_t k, const IvfSearchOptions& options = {},
                      std::optional<std::size_t> all_rows = {}) const;
  void set_probes(std::size_t probes);  // for every k; forgets the calibration

  // Sets the default probes and candidates to the cheapest pair that reaches the target recall on a sample of
  // the index's own vectors, with at least 2 probes (or all lists). A pair reaches the target if the lower
  // end of its 95 % interval does, or, if there is no such pair, if its estimate does. If even probing all
  // lists falls short, reached() is false and the probes are the fewest with a recall of at least
  // target_recall * (recall of all lists). For k = 1 and largest_k, probes are calibrated in the same way,
  // with candidates(k), but are never fewer than for k = 10; for k = 1 the estimate decides. The reference is
  // exact search among the vectors that the index keeps, or among `rows`, in which row i is the vector of id
  // i and which VectorStorage::none requires. Needs at least 2 vectors.
  Calibration calibrate(const Context& context, const CalibrationOptions& options = {});
  Calibration calibrate(const Context& context, RowsView rows, const CalibrationOptions& options = {});
  // The last calibration. It does not follow later changes: compare its `rows` with size().
  std::optional<Calibration> calibration() const;

  // Free text saved with the index. Training sets "version", "training" and "seed".
  std::map<std::string, std::string> provenance() const;
  void set_provenance(std::map<std::string, std::string> provenance);

 private:
  struct State;
  // What add_all() does with given ids that the index does not hold.
  enum class Missing : std::uint8_t { add, refuse };
  explicit Ivf(std::unique_ptr<State> state);
  std::size_t add_all(const char* operation, const Context& context, RowsView rows, std::span<const Id> ids,
                      OnDuplicate on_duplicate, Missing missing);
  void fill(const Context& context, const RowsView& rows);
  friend struct IvfInternals;  // src/ivf/ivf_state.h
  friend void save(const Ivf& index, const std::filesystem::path& path);
  friend Ivf load_ivf(const Context& context, const std::filesystem::path& path);

  std::unique_ptr<State> state_;
};

// Writes a container of docs/format.md, atomically; equal indexes give equal bytes.
void save(const Ivf& index, const std::filesystem::path& path);
// Merges files list by list without loading their vectors, so that the result may exceed memory. The files
// have the same quantizers; calibration and provenance are those of the first, with `provenance` added. The
// output may be one of the inputs. Progress counts vectors.
void merge_ivf_files(const Context& context, std::span<const std::filesystem::path> files,
                     const std::filesystem::path& output,
                     const std::map<std::string, std::string>& provenance = {});
// Maps the file after verifying its checksums and structure; a list is copied to memory when it changes. The
// file must not change while the index exists; if it is truncated, operations throw Error(corrupt). Throws
// Error(corrupt) for a damaged file. The vector file of VectorStorage::file is looked up at its original
// path, then by name in the folder of the index; Error(not_found) if it is in neither place, Error(corrupt)
// if its length or checksum differs.
Ivf load_ivf(const Context& context, const std::filesystem::path& path);

}  // namespace nearwise

// Inverted files: vectors in lists around the centroids of a k-means; a search probes the nearest few lists.
//
// IvfFlat stores the vectors unchanged. IvfPq stores a product code of each vector's residual: 8 to 64 bytes
// instead of hundreds. IvfLsq stores an additive code of it, which is more accurate at the same size and
// slower to encode. Search results are defined: knn chooses the probed lists, candidates are the best vectors
// in them by the distance to their reconstruction, and the best k candidates are returned, best first, the
// lower id first in a tie. They are the same bytes on every instruction set and thread count, whatever else
// is in the batch.
//
// build() trains, adds all vectors and calibrates the number of probes. train() returns an empty index;
// vectors are added in batches, under the caller's ids or consecutive ones. Searches may run concurrently;
// add, remove and merge must run alone, and leave the index unchanged if they fail or are cancelled. They
// report progress in vectors, search in queries. The index counts on the memory budget of the context it was
// trained with.
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

#include "nearwise/context.h"
#include "nearwise/export.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/product_quantizer.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

class MemoryBudget;

struct IvfSearchOptions {
  std::size_t probes = 0;  // lists to scan; 0: the calibrated number
  // Original vectors by id, in memory or in a mapped file: candidates are re-ranked and reported with their
  // true distance. Empty: candidates are reported with the distance to their reconstruction.
  RowsView rows = {};
  // Candidates to re-rank, at least k; 0: the calibrated number, for k above 10 in proportion.
  std::size_t candidates = 0;
};

struct CalibrationOptions {
  double recall = 0.9;        // target: share of the 10 nearest vectors among the first 10 results
  std::size_t queries = 500;  // vectors of the index used as queries, drawn with the context's seed
  bool rerank = true;         // false: calibrate searches without `rows`
};

// Recall of a search with default probes and candidates, on a sample. A query does not count as its own
// neighbour.
struct Calibration {
  std::size_t probes = 0;
  std::size_t candidates = 0;  // re-ranked; 0: none
  double recall = 0;           // of the sample
  double recall_of_codes = 0;  // with the same probes, without re-ranking
  double target = 0;
  std::size_t queries = 0;    // the size of the sample
  std::size_t neighbors = 0;  // 10, or all other rows
  std::size_t rows = 0;       // in the index at the time

  bool reached() const { return recall >= target; }
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

class Ivf {
 public:
  Ivf(Ivf&&) noexcept;
  Ivf& operator=(Ivf&&) noexcept;
  ~Ivf();

  // ids: one per vector, at least 0; empty: consecutive, from one above the largest id so far. Throws
  // Error(invalid_argument) naming the first vector with NaN or infinity.
  void add(const Context& context, RowsView rows, std::span<const Id> ids = {});
  // Removes all vectors with these ids; returns their number.
  std::size_t remove(const Context& context, std::span<const Id> ids);
  // Appends the vectors of an index with identical quantizers, that is of the same training.
  void merge(const Context& context, const Ivf& other);
  // An empty index with the same quantizers.
  Ivf empty_copy() const;
  // Vectors [first, first + count) in list order, on the budget of another context. Merging all parts in
  // order into an empty copy gives the whole index.
  Ivf part(const Context& context, std::size_t first, std::size_t count) const;
  // Whether the quantizers are identical, so that the indexes can be merged.
  bool has_quantizers_of(const Ivf& other) const;

  // [queries, k], padded if the probed lists hold fewer vectors.
  Neighbors search(const Context& context, RowsView queries, std::size_t k,
                   const IvfSearchOptions& options = {}) const;

  std::size_t size() const;  // vectors
  Id next_id() const;        // one above the largest id there ever was
  std::size_t dim() const;
  std::size_t lists() const;
  std::size_t list_size(std::size_t list) const;
  std::size_t code_bytes() const;  // per row, without the id
  Metric metric() const;
  MatrixView<const float> centroids() const;  // [lists, dim]
  std::string_view codec() const;             // "flat", "pq" or "lsq"
  const ProductQuantizer* quantizer() const;  // of residuals; null unless the codec is pq
  // Of residuals, [code_bytes, 256, dim]; empty unless the codec is lsq. A code decodes to the sum in f64 of
  // the list's centroid and one codeword of each codebook, rounded once.
  std::span<const float> additive_codewords() const;
  std::size_t probes() const;  // default of a search
  // Default number of re-ranked candidates: the same for k of up to 10, above in proportion.
  std::size_t candidates(std::size_t k = 10) const;
  void set_probes(std::size_t probes);

  // Sets the default probes and candidates to the cheapest pair that reaches the target recall: the lower end
  // of the 95 % interval of the sample must reach it; if no pair does, the sample mean. At least 2 probes, if
  // there are as many lists. If all lists together miss the target, reached() is false and the target applies
  // to the recall of all lists. `rows`: the original vectors by id, as in a search. Must run alone. The index
  // must have at least 2 vectors.
  Calibration calibrate(const Context& context, RowsView rows, const CalibrationOptions& options = {});
  // The last calibration; none after set_probes. Later changes are not reflected: compare its `rows` with
  // size().
  const std::optional<Calibration>& calibration() const;

  // Free text about its origin, saved with it; training sets "version", "training" and "seed".
  const std::map<std::string, std::string>& provenance() const;
  void set_provenance(std::map<std::string, std::string> provenance);

 protected:
  struct State;
  explicit Ivf(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;

 private:
  Ivf empty_copy(const std::shared_ptr<MemoryBudget>& budget) const;
  friend void save(const Ivf& index, const std::filesystem::path& path);
  friend Ivf load_ivf(const Context& context, const std::filesystem::path& path);
};

// In the container of docs/format.md, as storage.h has it: atomic, checked, the same bytes for the same
// index.
void save(const Ivf& index, const std::filesystem::path& path);
// Merges index files of one training into one file, list by list, without holding the vectors in memory. The
// calibration and provenance are the first file's, with `provenance` added. The output may be one of the
// inputs. Progress counts vectors.
void merge_ivf_files(const Context& context, std::span<const std::filesystem::path> files,
                     const std::filesystem::path& output,
                     const std::map<std::string, std::string>& provenance = {});
// Memory-maps the file: vectors are read when searched, and a list is copied when it changes. All checksums
// and the structure are verified first. The file must not change while the index lives.
Ivf load_ivf(const Context& context, const std::filesystem::path& path);

struct IvfFlatOptions {
  Metric metric = Metric::sqeuclidean;
  std::size_t lists = 0;        // 0: about 4 sqrt(n), with at least 39 vectors in each
  std::size_t iterations = 10;  // of k-means, at most
  // Training vectors per list, drawn with the context's seed; 0: all.
  std::size_t rows_per_list = 256;
};

class IvfFlat : public Ivf {
 public:
  static IvfFlat train(const Context& context, RowsView rows, const IvfFlatOptions& options = {});
  // Trains on the vectors, adds them and calibrates.
  static IvfFlat build(const Context& context, RowsView rows, const IvfFlatOptions& options = {},
                       const CalibrationOptions& measure = {});

 private:
  using Ivf::Ivf;
};

struct IvfPqOptions {
  Metric metric = Metric::sqeuclidean;
  std::size_t lists = 0;
  std::size_t iterations = 10;
  std::size_t rows_per_list = 256;
  std::size_t code_bytes = 0;  // 0: one per 8 dimensions, 8 to 64
  unsigned bits = 8;           // of a part's code: 4 or 8
};

class IvfPq : public Ivf {
 public:
  static IvfPq train(const Context& context, RowsView rows, const IvfPqOptions& options = {});
  static IvfPq build(const Context& context, RowsView rows, const IvfPqOptions& options = {},
                     const CalibrationOptions& measure = {});

 private:
  using Ivf::Ivf;
};

struct IvfLsqOptions {
  Metric metric = Metric::sqeuclidean;
  std::size_t lists = 0;
  std::size_t iterations = 10;
  std::size_t rows_per_list = 256;
  std::size_t code_bytes = 8;          // codebooks, 1 to 32; no byte for the norm, which lists cache instead
  std::size_t rounds = 25;             // of training; local search iterations in every round:
  std::size_t train_iterations = 8;    // as in AdditiveQuantizerOptions
  std::size_t encode_iterations = 16;  // of local search when vectors are added
};

// Additive codes (additive_quantizer.h) of residuals.
class IvfLsq : public Ivf {
 public:
  static IvfLsq train(const Context& context, RowsView rows, const IvfLsqOptions& options = {});
  static IvfLsq build(const Context& context, RowsView rows, const IvfLsqOptions& options = {},
                      const CalibrationOptions& measure = {});

 private:
  using Ivf::Ivf;
};

}  // namespace nearwise

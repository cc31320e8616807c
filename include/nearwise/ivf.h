// Inverted files: rows in lists around the centroids of a k-means, of which a search looks at the nearest few.
//
// IvfFlat keeps the rows as they are. IvfPq keeps of every row a product code of what its centroid leaves over: 8 to 64 bytes
// instead of hundreds; IvfLsq an additive code of it, which loses less in as many bytes and takes longer to make. The answer of a search is defined, not a matter of luck: the lists are those whose centroids knn
// finds, the candidates are the rows in them that are best by the distance from what their code stands for, and among
// them the best k are reported, best first, the lower id in a tie. The same bytes on every instruction set and at any
// number of threads, whatever else is in the batch.
//
// build() makes an index of all rows, and measures how many lists a search must look at. train() returns an index without
// rows: they are added in batches, under the caller's ids or numbered in turn. Searches may run at once; add, remove and
// merge must run alone, and where they fail or are cancelled the rows are as before. They report progress in rows, search in
// queries. The index counts on the budget of the context it was trained with.
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
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/product_quantizer.h"
#include "nearwise/types.h"

namespace nearwise {

class MemoryBudget;

struct IvfSearchOptions {
  std::size_t probes = 0;  // lists to look at; 0: the index's own number
  // The vectors themselves, by id, in memory or in a mapped file: candidates are looked at again, and reported with their
  // true distance. Empty: candidates are reported as their codes have them.
  RowsView rows = {};
  std::size_t candidates =
      0;  // rows to look at again, at least k; 0: the index's own number, for k above 10 in proportion
};

struct CalibrationOptions {
  double recall = 0.9;        // wanted: the share of the 10 nearest rows that are among the first 10 answers
  std::size_t queries = 500;  // rows of the index to search for, drawn by the context's seed
  bool rerank = true;         // false: for searches that will have no `rows`
};

// How much of the truth a search finds that names neither probes nor candidates. A row that is searched for does not count
// as its own neighbour.
struct Calibration {
  std::size_t probes = 0;
  std::size_t candidates = 0;  // of the second look; 0: there was none
  double recall = 0;           // of the sample
  double recall_of_codes = 0;  // with the same probes, without a second look
  double target = 0;
  std::size_t queries = 0;    // the size of the sample
  std::size_t neighbors = 0;  // 10, or all other rows
  std::size_t rows = 0;       // of the index when it was measured

  bool reached() const { return recall >= target; }
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

class Ivf {
 public:
  Ivf(Ivf&&) noexcept;
  Ivf& operator=(Ivf&&) noexcept;
  ~Ivf();

  // ids: one per row, 0 or larger; empty: numbers from one above the largest id so far. Names the first row with NaN or
  // infinity.
  void add(const Context& context, RowsView rows, std::span<const Id> ids = {});
  // Every row with one of these ids. Returns their number.
  std::size_t remove(const Context& context, std::span<const Id> ids);
  // Appends the rows of an index with the same quantizers, element for element: made by one training.
  void merge(const Context& context, const Ivf& other);
  // An index with the same quantizers and without rows.
  Ivf empty_copy() const;
  // The rows [first, first + count) in the order of lists, on the budget of another context: parts in turn, merged into an
  // empty copy, are the whole.
  Ivf part(const Context& context, std::size_t first, std::size_t count) const;
  // Element for element: rows of the one may be merged into the other.
  bool has_quantizers_of(const Ivf& other) const;

  // [queries, k], padded where the lists hold fewer rows.
  Neighbors search(const Context& context, RowsView queries, std::size_t k,
                   const IvfSearchOptions& options = {}) const;

  std::size_t size() const;  // rows
  Id next_id() const;        // one above the largest id there ever was
  std::size_t dim() const;
  std::size_t lists() const;
  std::size_t list_size(std::size_t list) const;
  std::size_t code_bytes() const;  // per row, without the id
  Metric metric() const;
  MatrixView<const float> centroids() const;  // [lists, dim]
  std::string_view codec() const;             // of what is kept of a row: "flat", "pq" or "lsq"
  const ProductQuantizer* quantizer() const;  // of product codes of what the centroids leave over; else null
  // Of additive codes of it, [code_bytes, 256, dim]; else empty. What a code stands for is the sum in f64 of its list's
  // centroid and a codeword of each codebook, rounded once.
  std::span<const float> additive_codewords() const;
  std::size_t probes() const;  // of a search that names none
  // Of a second look that names none: the same for k of up to 10, above in proportion.
  std::size_t candidates(std::size_t k = 10) const;
  void set_probes(std::size_t probes);

  // Makes the index's own numbers the smallest probes, with the cheapest candidates for a second look, that reach the recall
  // wanted on rows of the index: one probe less does not. The lower end of the interval that the sample gives must reach it
  // (95 %), so that it holds for rows that were not drawn; where none does, the sample itself. At least 2 probes, where there are as many lists. If all lists do
  // not reach it, reached() is false and the probes are those that find as large a share of what all lists find. `rows`
  // are the vectors by id, as in a search. Must run alone. The index has at least 2 rows.
  Calibration calibrate(const Context& context, RowsView rows, const CalibrationOptions& options = {});
  // The last measurement; none after set_probes. Rows that came or went since are not in it: compare its `rows` with size().
  const std::optional<Calibration>& calibration() const;

  // Where it comes from, as free text, saved with it: "version", "training" and "seed" are the training's.
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

// In the container of docs/format.md, as storage.h has it: atomic, checked, the same bytes for the same index.
void save(const Ivf& index, const std::filesystem::path& path);
// The file of what merging the others into the first, in their order, would make, put together list by list: rows take no
// memory, so that parts make an index larger than it. All have the same quantizers; what was measured is the first's, and
// so is what it came from, with `provenance` added. The output may be one of the files. progress counts rows.
void merge_ivf_files(const Context& context, std::span<const std::filesystem::path> files,
                     const std::filesystem::path& output,
                     const std::map<std::string, std::string>& provenance = {});
// Maps the file: its rows are read as searches need them, and copied list by list where they change. Every checksum is
// verified first, and the structure apart from them. The file must stay as it is while the index lives.
Ivf load_ivf(const Context& context, const std::filesystem::path& path);

struct IvfFlatOptions {
  Metric metric = Metric::sqeuclidean;
  std::size_t lists = 0;        // 0: about 4 sqrt(rows), and at least 39 rows in each
  std::size_t iterations = 10;  // of k-means, at most
  std::size_t rows_per_list =
      256;  // to train on; of more rows so many are drawn by the context's seed. 0: all
};

class IvfFlat : public Ivf {
 public:
  static IvfFlat train(const Context& context, RowsView rows, const IvfFlatOptions& options = {});
  // Trains on the rows, adds them and measures the probes.
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
  std::size_t code_bytes = 0;  // 0: one for every 8 elements, 8 to 64
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
  std::size_t code_bytes = 8;  // codebooks, 1 to 32: no byte tells a length here, which lists know otherwise
  std::size_t rounds = 25;     // of the training of codewords, and of the search for codes in every round:
  std::size_t train_iterations = 8;    // as in AdditiveQuantizerOptions
  std::size_t encode_iterations = 16;  // of the search for the code of a row that is added
};

// Additive codes (additive_quantizer.h) of what centroids leave over.
class IvfLsq : public Ivf {
 public:
  static IvfLsq train(const Context& context, RowsView rows, const IvfLsqOptions& options = {});
  static IvfLsq build(const Context& context, RowsView rows, const IvfLsqOptions& options = {},
                      const CalibrationOptions& measure = {});

 private:
  using Ivf::Ivf;
};

}  // namespace nearwise

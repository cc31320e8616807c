// Inverted files for Python.
#include "nearwise/ivf.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "nearwise/error.h"
#include "results.h"

namespace nearwise::python {
namespace {

using NumpyIdMatrix = nb::ndarray<nb::numpy, const Id, nb::ndim<2>, nb::c_contig>;
// The fields of Python's RecallAtK and Calibration in their order.
using RecallAtKFields = std::tuple<std::size_t, std::size_t, Estimate, Estimate>;
using CalibrationFields = std::tuple<std::size_t, std::optional<std::size_t>, Estimate, Estimate, double,
                                     std::size_t, std::size_t, std::vector<RecallAtKFields>>;

CalibrationFields fields_of(const Calibration& found) {
  std::vector<RecallAtKFields> other_k;
  for (const RecallAtK& other : found.other_k)
    other_k.emplace_back(other.k, other.probes, recall_fields(other.recall),
                         recall_fields(other.recall_without_rerank));
  return {found.probes,
          found.candidates,
          recall_fields(found.recall),
          recall_fields(found.recall_without_rerank),
          found.target_recall,
          found.neighbors,
          found.rows,
          std::move(other_k)};
}

// An index and the context it was made with, whose memory budget holds its vectors: changes use it as well.
// Every search has a context of its own, for the reasons given in prepared_base.cpp.
//
// The index orders the calls of threads. Methods that may wait for another thread do not hold the interpreter
// lock.
class InvertedFile {
 public:
  InvertedFile(Ivf index, Context context)
      : index_(std::move(index)), context_(std::move(context)), place_(context_.place()) {}

  // settings.memory_limit is for the index and this call together, in all methods.
  std::size_t add(const BorrowedRows& rows, const std::optional<NumpyIds>& ids,
                  const std::string& on_duplicate, const Settings& settings, nb::handle progress) {
    const RowsView& view = rows.view();
    const std::span<const Id> given = ids ? span_of(*ids) : std::span<const Id>();
    // To C++, no ids mean consecutive numbers.
    if (ids && given.size() != view.rows())
      throw Error(ErrorCode::invalid_argument, "add: expected one id per vector, got " +
                                                   std::to_string(given.size()) + " for " +
                                                   std::to_string(view.rows()) + " vectors");
    const OnDuplicate duplicates = on_duplicate == "replace" ? OnDuplicate::replace
                                   : on_duplicate == "keep"  ? OnDuplicate::keep
                                                             : OnDuplicate::refuse;
    check_available(settings.memory_limit,
                    view.rows() * (index_.code_bytes() + index_.vector_bytes() + sizeof(Id)));
    std::size_t added = 0;
    run_by_size(changing_context(settings), progress, change_steps(multiplications(view, index_.centroids())),
                [&](const Context& own) { added = index_.add(own, view, given, duplicates); });
    return added;
  }

  void update(const NumpyIds& ids, const BorrowedRows& rows, const Settings& settings, nb::handle progress) {
    const RowsView& view = rows.view();
    check_available(settings.memory_limit,
                    view.rows() * (index_.code_bytes() + index_.vector_bytes() + sizeof(Id)));
    run_by_size(changing_context(settings), progress, change_steps(multiplications(view, index_.centroids())),
                [&](const Context& own) { index_.update(own, span_of(ids), view); });
  }

  std::size_t remove(const NumpyIds& ids, const Settings& settings, nb::handle progress) {
    std::size_t removed = 0;
    run_by_size(changing_context(settings), progress,
                change_steps(static_cast<double>(size()) + static_cast<double>(ids.size())),
                [&](const Context& own) { removed = index_.remove(own, span_of(ids)); });
    return removed;
  }

  void compact() {
    run([&] { index_.compact(); });
  }

  bool contains(Id id) const {
    return without_lock([&] { return index_.contains(id); });
  }

  NumpyVector<Id> ids() const {
    return to_numpy<Id>(without_lock([&] { return index_.ids(); }));
  }

  NumpyMatrix<float> get(const NumpyIds& ids) const {
    Matrix<float> out(ids.size(), index_.dim());
    without_lock([&] { index_.get(span_of(ids), out.view()); });
    return to_numpy(std::move(out));
  }

  NumpyNeighbors rerank(const BorrowedRows& queries, const NumpyIdMatrix& candidates, std::uint64_t k,
                        const Settings& settings) const {
    const Context context = context_for(settings_of_call(settings));
    std::optional<Neighbors> found;
    run(context, nb::none(), [&](const Context& own) {
      found = index_.rerank(own, queries.view(),
                            {candidates.data(), candidates.shape(0), candidates.shape(1)}, k);
    });
    return to_numpy(std::move(*found));
  }

  void merge(const InvertedFile& other, const Settings& settings, nb::handle progress) {
    run(changing_context(settings), progress, [&](const Context& own) { index_.merge(own, other.index_); });
  }

  std::unique_ptr<InvertedFile> empty_copy() const {
    return without_lock([&] { return std::make_unique<InvertedFile>(index_.empty_copy(), context_); });
  }

  // Later calls are on that device.
  void to(const Settings& settings) {
    const Context context = context_for(settings_of_call(settings));
    run(context, nb::none(), [&](const Context& own) { index_.to(own); });
    place_ = context.place();
  }

  NumpyNeighbors search(const BorrowedRows& queries, std::uint64_t k, std::uint64_t probes, bool codes_only,
                        const BorrowedRows* rerank, std::uint64_t candidates, const Filter* filter,
                        std::uint64_t scanned, const Settings& settings, nb::handle progress) const {
    const IvfSearchOptions options = search_options(probes, codes_only, rerank, candidates, filter, scanned);
    const Context context = context_for(settings_of_call(settings));
    std::optional<Neighbors> found;
    run_by_size(context, progress, search_steps(queries.view().rows(), k, options),
                [&](const Context& own) { found = index_.search(own, queries.view(), k, options); });
    return to_numpy(std::move(*found));
  }

  NumpyRangeNeighbors range_search(const BorrowedRows& queries, float radius, std::uint64_t probes,
                                   const Filter* filter, const Settings& settings,
                                   nb::handle progress) const {
    const IvfRangeOptions options = {.probes = optional_of(probes), .filter = filter_of(filter)};
    std::optional<RangeNeighbors> found;
    run(context_for(settings_of_call(settings)), progress,
        [&](const Context& own) { found = index_.range_search(own, queries.view(), radius, options); });
    return to_numpy(std::move(*found));
  }

  // The fields of Python's SearchPlan in their order.
  std::tuple<bool, std::size_t, std::size_t, std::size_t, std::size_t, double, double> explain(
      const BorrowedRows& queries, std::uint64_t k, std::uint64_t probes, bool codes_only,
      const BorrowedRows* rerank, std::uint64_t candidates, const Filter* filter, std::uint64_t scanned,
      const Settings& settings) const {
    const IvfSearchOptions options = search_options(probes, codes_only, rerank, candidates, filter, scanned);
    IvfSearchPlan plan;
    run(context_for(settings_of_call(settings)), nb::none(),
        [&](const Context& own) { plan = index_.explain(own, queries.view().rows(), k, options); });
    return {plan.exact,   plan.allowed,    plan.lists,     plan.probes,
            plan.scanned, plan.exact_cost, plan.lists_cost};
  }

  CalibrationFields calibrate(const BorrowedRows* rows, double target_recall, std::uint64_t queries,
                              bool rerank, std::uint64_t largest_k, const Settings& settings,
                              nb::handle progress) {
    if (rows != nullptr && rows->view().rows() == 0)
      throw Error(ErrorCode::invalid_argument, "calibrate: rows must hold a vector for every id, got none");
    const Context context = context_for(settings_of_call(settings));
    Calibration found;
    run(context, progress, [&](const Context& own) {
      found = index_.calibrate(
          own, rows == nullptr ? RowsView() : rows->view(),
          {.target_recall = target_recall, .queries = queries, .rerank = rerank, .largest_k = largest_k});
    });
    return fields_of(found);
  }

  std::optional<CalibrationFields> calibration() const {
    const std::optional<Calibration> found = without_lock([&] { return index_.calibration(); });
    if (!found) return {};
    return fields_of(*found);
  }

  void save_to(const std::filesystem::path& path) const {
    run(context_for({}), nb::none(), [&](const Context&) { save(index_, path); });
  }

  std::size_t size() const { return index_.size(); }
  std::size_t list_size(std::size_t list) const {
    return without_lock([&] { return index_.list_size(list); });
  }
  std::size_t probes() const {
    return without_lock([&] { return index_.probes(); });
  }
  std::size_t scanned_for(std::size_t k, bool codes_only, std::uint64_t candidates,
                          std::size_t all_rows) const {
    const IvfSearchOptions options{.codes_only = codes_only, .candidates = optional_of(candidates)};
    return without_lock([&] { return index_.scanned(k, options, all_rows); });
  }
  std::size_t candidates() const {
    return without_lock([&] { return index_.candidates(); });
  }
  void set_probes(std::size_t probes) {
    without_lock([&] { index_.set_probes(probes); });
  }
  std::map<std::string, std::string> provenance() const {
    return without_lock([&] { return index_.provenance(); });
  }
  void set_provenance(const std::map<std::string, std::string>& provenance) {
    without_lock([&] { index_.set_provenance(provenance); });
  }
  // For properties that never change.
  const Ivf& index() const { return index_; }
  std::string device() const { return name(place_); }
  std::uint64_t device_bytes() const {
    return without_lock([&] { return index_.device_bytes(place_); });
  }
  std::string metric() const { return std::string(name(index_.metric())); }
  std::string codec() const { return std::string(index_.encoding()); }

 private:
  IvfSearchOptions search_options(std::uint64_t probes, bool codes_only, const BorrowedRows* rerank,
                                  std::uint64_t candidates, const Filter* filter,
                                  std::uint64_t scanned) const {
    IvfSearchOptions options{.probes = optional_of(probes),
                             .codes_only = codes_only,
                             .candidates = optional_of(candidates),
                             .filter = filter_of(filter),
                             .scanned = optional_of(scanned)};
    if (rerank != nullptr) {
      options.rerank = rerank->view();
      // To C++, no vectors mean those of the index.
      if (options.rerank.rows() == 0 && size() != 0)
        throw Error(ErrorCode::invalid_argument, "search: rerank must hold a vector for every id, got none");
    }
    return options;
  }

  // For run_by_size: a call that waits for another thread is not brief.
  double change_steps(double steps) const {
    return index_.is_changing() ? std::numeric_limits<double>::infinity() : steps;
  }

  // The same for a search: centroids, scanned codes and candidates, with lists of average length.
  double search_steps(std::size_t queries, std::size_t k, const IvfSearchOptions& options) const {
    // Otherwise nothing below waits, but for a change that begins right now.
    if (index_.is_changing()) return std::numeric_limits<double>::infinity();
    const auto lists = static_cast<double>(index_.lists());
    const auto probes = static_cast<double>(options.probes.value_or(index_.probes(k)));
    const auto candidates =
        static_cast<double>(options.rerank.rows() != 0 || (index_.vector_bytes() != 0 && !options.codes_only)
                                ? options.candidates.value_or(index_.candidates(k))
                                : k);
    // A filter may take all allowed vectors.
    const double rows = options.filter.is_trivial() ? probes * static_cast<double>(size()) / lists
                                                    : static_cast<double>(size());
    return static_cast<double>(queries) * ((lists + candidates) * static_cast<double>(index_.dim()) +
                                           rows * static_cast<double>(index_.code_bytes()));
  }

  // With a memory limit, the context whose budget holds the vectors; but threads do not survive a fork.
  Context changing_context(const Settings& settings) const {
    if (context_.memory_limit() == 0) return context_for(settings);
    if (owner_ == getpid() && place_ == context_.place()) return context_;
    return context_for(settings.with_memory_limit(context_.memory_limit()));
  }

  // For a call on the index, which has its own budget, and its copy on a device.
  Settings settings_of_call(const Settings& settings) const {
    check_available(settings.memory_limit, 0);
    return settings.with_memory_in_use(used() + (settings.memory_limit == 0 ? 0 : device_bytes()));
  }

  std::uint64_t used() const { return context_.memory_limit() == 0 ? 0 : context_.memory_used(); }

  // Whether a limit, if there is one, leaves room for the index and `bytes` more. Where they count on the
  // limit, the call itself refuses them, and names what it needs with them.
  void check_available(std::uint64_t limit, std::uint64_t bytes) const {
    const bool is_counted = context_.memory_limit() == 0 || limit == context_.memory_limit();
    if (limit == 0 || used() + (is_counted ? 0 : bytes) < limit) return;
    throw Error(ErrorCode::out_of_memory, "the index and the new vectors take " +
                                              std::to_string(used() + bytes) +
                                              " bytes, the memory limit leaves " + std::to_string(limit));
  }

  Ivf index_;
  Context context_;
  Place place_;  // of searches and changes
  pid_t owner_ = getpid();
};

Encoding encoding_of(const std::string& codec, std::uint64_t code_bytes, unsigned bits, std::uint64_t rounds,
                     std::uint64_t train_iterations, std::uint64_t encode_iterations) {
  if (codec == "pq") return Pq{.code_bytes = optional_of(code_bytes), .bits = bits};
  if (codec == "lsq")
    return Lsq{.code_bytes = code_bytes,
               .rounds = rounds,
               .train_iterations = train_iterations,
               .encode_iterations = encode_iterations};
  return Flat{};
}

// Without a target recall the index is trained and stays empty. Options of other codecs than the given one
// are ignored.
std::unique_ptr<InvertedFile> make_index(const BorrowedRows& rows, const std::string& codec,
                                         std::optional<double> target_recall, const std::string& metric,
                                         std::uint64_t lists, std::uint64_t iterations,
                                         std::uint64_t training_rows, const std::string& vectors,
                                         const std::filesystem::path& vector_file, const Settings& settings,
                                         nb::handle progress, std::uint64_t code_bytes, unsigned bits,
                                         std::uint64_t rounds, std::uint64_t train_iterations,
                                         std::uint64_t encode_iterations) {
  const IvfOptions options = {
      .metric = parse_metric(metric),
      .lists = optional_of(lists),
      .iterations = iterations,
      .training_rows = optional_of(training_rows),
      .encoding = encoding_of(codec, code_bytes, bits, rounds, train_iterations, encode_iterations),
      .vectors = parse_vector_storage(vectors),
      .vector_file = vector_file};
  const Context context = context_for(settings);
  std::optional<Ivf> made;
  run(context, progress, [&](const Context& own) {
    made.emplace(target_recall ? Ivf::build(own, rows.view(), options,
                                            CalibrationOptions{.target_recall = *target_recall})
                               : Ivf::train(own, rows.view(), options));
  });
  return std::make_unique<InvertedFile>(std::move(*made), context);
}

std::unique_ptr<InvertedFile> load_index(const std::filesystem::path& path, const Settings& settings,
                                         nb::handle progress) {
  const Context context = context_for(settings);
  std::optional<Ivf> loaded;
  run(context, progress, [&](const Context& own) { loaded.emplace(load_ivf(own, path)); });
  return std::make_unique<InvertedFile>(std::move(*loaded), context);
}

using ReadOnlyFloats = nb::ndarray<nb::numpy, const float, nb::ndim<2>>;

// Over the index's own memory, which lives as long as the array.
ReadOnlyFloats centroids_of(nb::handle self) {
  const MatrixView<const float> centroids = nb::cast<const InvertedFile&>(self).index().centroids();
  return ReadOnlyFloats(centroids.data(), {centroids.rows(), centroids.cols()}, self);
}

}  // namespace

void bind_ivf(nb::module_& module) {
  nb::class_<InvertedFile>(module, "Ivf", "An inverted file.")
      .def("add", &InvertedFile::add, nb::arg("rows"), nb::arg("ids").none().noconvert(),
           nb::arg("on_duplicate"), nb::arg("settings"), nb::arg("progress").none(),
           "The number of vectors added or replaced.")
      .def("update", &InvertedFile::update, nb::arg("ids").noconvert(), nb::arg("rows"), nb::arg("settings"),
           nb::arg("progress").none())
      .def("remove", &InvertedFile::remove, nb::arg("ids").noconvert(), nb::arg("settings"),
           nb::arg("progress").none(), "The number of vectors removed.")
      .def("compact", &InvertedFile::compact)
      .def("contains", &InvertedFile::contains, nb::arg("id"))
      .def("ids", &InvertedFile::ids, "Ascending.")
      .def("get", &InvertedFile::get, nb::arg("ids").noconvert(), "[ids, dim]")
      .def("rerank", &InvertedFile::rerank, nb::arg("queries"), nb::arg("candidates").noconvert(),
           nb::arg("k"), nb::arg("settings"), "ids and distances [queries, k]")
      .def("merge", &InvertedFile::merge, nb::arg("other"), nb::arg("settings"), nb::arg("progress").none())
      .def("empty_copy", &InvertedFile::empty_copy)
      .def("to", &InvertedFile::to, nb::arg("settings"))
      .def("search", &InvertedFile::search, nb::arg("queries"), nb::arg("k"), nb::arg("probes"),
           nb::arg("codes_only"), nb::arg("rerank").none(), nb::arg("candidates"), nb::arg("filter").none(),
           nb::arg("scanned"), nb::arg("settings"), nb::arg("progress").none(),
           "ids and distances [queries, k]")
      .def("range_search", &InvertedFile::range_search, nb::arg("queries"), nb::arg("radius"),
           nb::arg("probes"), nb::arg("filter").none(), nb::arg("settings"), nb::arg("progress").none(),
           "offsets [queries + 1], ids and distances")
      .def("explain", &InvertedFile::explain, nb::arg("queries"), nb::arg("k"), nb::arg("probes"),
           nb::arg("codes_only"), nb::arg("rerank").none(), nb::arg("candidates"), nb::arg("filter").none(),
           nb::arg("scanned"), nb::arg("settings"), "The fields of SearchPlan.")
      .def("calibrate", &InvertedFile::calibrate, nb::arg("rows").none(), nb::arg("target_recall"),
           nb::arg("queries"), nb::arg("rerank"), nb::arg("largest_k"), nb::arg("settings"),
           nb::arg("progress").none(), "The fields of Calibration.")
      .def("save", &InvertedFile::save_to, nb::arg("path"))
      .def("list_size", &InvertedFile::list_size, nb::arg("list"))
      .def("scanned_for", &InvertedFile::scanned_for, nb::arg("k"), nb::arg("codes_only"),
           nb::arg("candidates"), nb::arg("all_rows"),
           "Allowed vectors that a search under a filter scans for each query.")
      .def_prop_ro("size", &InvertedFile::size)
      .def_prop_ro("dim", [](const InvertedFile& file) { return file.index().dim(); })
      .def_prop_ro("lists", [](const InvertedFile& file) { return file.index().lists(); })
      .def_prop_ro("code_bytes", [](const InvertedFile& file) { return file.index().code_bytes(); })
      .def_prop_ro("vector_bytes", [](const InvertedFile& file) { return file.index().vector_bytes(); })
      .def_prop_ro("vectors",
                   [](const InvertedFile& file) { return std::string(name(file.index().vectors())); })
      .def_prop_ro("vector_file", [](const InvertedFile& file) { return file.index().vector_file(); })
      .def_prop_ro("keeps_vectors", [](const InvertedFile& file) { return file.index().keeps_vectors(); })
      .def_prop_ro("device", &InvertedFile::device)
      .def_prop_ro("device_bytes", &InvertedFile::device_bytes)
      .def_prop_ro("metric", &InvertedFile::metric)
      .def_prop_ro("codec", &InvertedFile::codec, "flat, pq or lsq")
      .def_prop_ro("centroids", centroids_of, "[lists, dim]")
      .def_prop_ro("calibration", &InvertedFile::calibration, "The fields of Calibration, or None.")
      .def_prop_ro("candidates", &InvertedFile::candidates)
      .def_prop_rw("provenance", &InvertedFile::provenance, &InvertedFile::set_provenance)
      .def_prop_rw("probes", &InvertedFile::probes, &InvertedFile::set_probes);
  module.def("make_ivf", make_index, nb::arg("rows"), nb::arg("codec"), nb::arg("target_recall").none(),
             nb::arg("metric"), nb::arg("lists"), nb::arg("iterations"), nb::arg("training_rows"),
             nb::arg("vectors"), nb::arg("vector_file"), nb::arg("settings"), nb::arg("progress").none(),
             nb::arg("code_bytes") = 0, nb::arg("bits") = 8, nb::arg("rounds") = 0,
             nb::arg("train_iterations") = 0, nb::arg("encode_iterations") = 0);
  module.def("load_ivf", load_index, nb::arg("path"), nb::arg("settings"), nb::arg("progress").none());
}

}  // namespace nearwise::python

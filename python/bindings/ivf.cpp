// Inverted files for Python.
#include "nearwise/ivf.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <tuple>
#include <utility>

#include "bindings.h"
#include "nearwise/error.h"

namespace nearwise::python {
namespace {

using NumpyIds = nb::ndarray<nb::numpy, const Id, nb::ndim<1>, nb::c_contig>;

struct Machine {
  std::string device;
  int threads;
  std::uint64_t memory_limit;
  std::string isa;
  std::uint64_t seed = 0;
};

// The fields of Calibration in their order.
using Measured =
    std::tuple<std::size_t, std::size_t, double, double, double, std::size_t, std::size_t, std::size_t>;

Measured fields_of(const Calibration& measured) {
  return {measured.probes, measured.candidates, measured.recall,    measured.recall_of_codes,
          measured.target, measured.queries,    measured.neighbors, measured.rows};
}

// An index and the machine it works on. The index counts on the budget of the context it was made with, which stays: what
// changes it works there, too. Searches take a context each, as those of PreparedBase do and for the same reasons.
//
// C++ leaves it to the caller that nothing else runs while rows come and go. Python's threads are nobody's to order, so
// there is a lock; it is waited for without the interpreter lock.
class InvertedFile {
  using Mutex = std::shared_timed_mutex;

  template <typename Read>
  auto reading(const Read& read) const {
    const nb::gil_scoped_release unlocked;
    const std::shared_lock lock(mutex_);
    return read();
  }

 public:
  InvertedFile(Ivf index, Context context, Machine machine)
      : index_(std::move(index)),
        context_(std::move(context)),
        machine_(std::move(machine)),
        size_(index_.size()) {}

  // copied_bytes: what Python has spent of the limit on converted copies.
  void add(nb::handle rows, const std::string& rows_type, const std::optional<NumpyIds>& ids,
           std::uint64_t copied_bytes, nb::handle progress) {
    const BorrowedRows borrowed(rows, parse_element_type(rows_type), "rows");
    const RowsView& view = borrowed.view();
    const std::span<const Id> given = ids ? span_of(*ids) : std::span<const Id>();
    // No ids are C++'s word for numbers in turn.
    if (ids && given.size() != view.rows())
      throw Error(ErrorCode::invalid_argument, "add: one id per row expected, given " +
                                                   std::to_string(given.size()) + " for " +
                                                   std::to_string(view.rows()) + " rows");
    require_room(copied_bytes + (view.rows() * (index_.code_bytes() + sizeof(Id))));
    run_by_size(changing_context(), progress,
                steps_of<std::unique_lock<Mutex>>(multiplications(view, index_.centroids())),
                [&](const Context& own) {
                  const auto lock = wait_for<std::unique_lock<Mutex>>(own);
                  index_.add(own, view, given);
                  size_ = index_.size();
                });
  }

  std::size_t remove(const NumpyIds& ids, nb::handle progress) {
    std::size_t removed = 0;
    run_by_size(
        changing_context(), progress,
        steps_of<std::unique_lock<Mutex>>(static_cast<double>(size()) + static_cast<double>(ids.size())),
        [&](const Context& own) {
          const auto lock = wait_for<std::unique_lock<Mutex>>(own);
          removed = index_.remove(own, span_of(ids));
          size_ = index_.size();
        });
    return removed;
  }

  void merge(const InvertedFile& other, nb::handle progress) {
    if (&other == this) return index_.merge(context_, index_);  // says what is wrong with that
    run(changing_context(), progress, [&](const Context& own) {
      std::unique_lock mine(mutex_, std::defer_lock);
      std::shared_lock theirs(other.mutex_, std::defer_lock);
      // Two indexes that are merged into each other must not wait for each other.
      while (std::try_lock(mine, theirs) != -1) {
        check(own);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      index_.merge(own, other.index_);
      size_ = index_.size();
    });
  }

  std::unique_ptr<InvertedFile> empty_copy() const {
    return reading([&] { return std::make_unique<InvertedFile>(index_.empty_copy(), context_, machine_); });
  }

  // rows: None, or the array whose type rows_type names.
  NumpyNeighbors search(nb::handle queries, const std::string& queries_type, std::uint64_t k,
                        std::uint64_t probes, nb::handle rows, const std::string& rows_type,
                        std::uint64_t candidates, std::uint64_t copied_bytes, nb::handle progress) const {
    const BorrowedRows query_rows(queries, parse_element_type(queries_type), "queries");
    std::optional<BorrowedRows> rerank;
    IvfSearchOptions options{.probes = probes, .candidates = candidates};
    if (!rows.is_none()) {
      rerank.emplace(rows, parse_element_type(rows_type), "rows");
      options.rows = rerank->view();
      // No rows are C++'s word for no second look.
      if (options.rows.rows() == 0 && size() != 0)
        throw Error(ErrorCode::invalid_argument, "search: `rows` must hold a row for every id, given 0 rows");
    }
    const Context context =
        context_for(machine_.device, machine_.threads, require_room(copied_bytes), machine_.isa);
    std::optional<Neighbors> found;
    run_by_size(context, progress, search_steps(query_rows.view().rows(), k, options),
                [&](const Context& own) {
                  const auto lock = wait_for<std::shared_lock<Mutex>>(own);
                  found = index_.search(own, query_rows.view(), k, options);
                });
    return to_numpy(std::move(*found));
  }

  Measured calibrate(nb::handle rows, const std::string& rows_type, double recall, std::uint64_t queries,
                     bool rerank, std::uint64_t copied_bytes, nb::handle progress) {
    const BorrowedRows borrowed(rows, parse_element_type(rows_type), "rows");
    const Context context = context_for(machine_.device, machine_.threads, require_room(copied_bytes),
                                        machine_.isa, machine_.seed);
    Calibration measured;
    run(context, progress, [&](const Context& own) {
      const auto lock = wait_for<std::unique_lock<Mutex>>(own);
      measured =
          index_.calibrate(own, borrowed.view(), {.recall = recall, .queries = queries, .rerank = rerank});
    });
    return fields_of(measured);
  }

  std::optional<Measured> measured() const {
    return reading([&]() -> std::optional<Measured> {
      if (!index_.calibration()) return {};
      return fields_of(*index_.calibration());
    });
  }

  void save_to(const std::filesystem::path& path) const {
    reading([&] { save(index_, path); });
  }

  std::size_t size() const { return size_; }
  std::size_t list_size(std::size_t list) const {
    return reading([&] { return index_.list_size(list); });
  }
  std::size_t probes() const {
    return reading([&] { return index_.probes(); });
  }
  std::size_t candidates() const {
    return reading([&] { return index_.candidates(); });
  }
  void set_probes(std::size_t probes) {
    const nb::gil_scoped_release unlocked;
    const std::unique_lock lock(mutex_);
    index_.set_probes(probes);
  }
  std::map<std::string, std::string> provenance() const {
    return reading([&] { return index_.provenance(); });
  }
  void set_provenance(const std::map<std::string, std::string>& provenance) {
    const nb::gil_scoped_release unlocked;
    const std::unique_lock lock(mutex_);
    index_.set_provenance(provenance);
  }
  // Never changed.
  const Ivf& index() const { return index_; }
  std::string metric() const { return std::string(name(index_.metric())); }
  std::string codec() const { return std::string(index_.codec()); }

 private:
  static std::span<const Id> span_of(const NumpyIds& ids) { return {ids.data(), ids.size()}; }

  static void check(const Context& own) {
    if (own.cancelled()) throw Error(ErrorCode::cancelled, "cancelled while another thread used the index");
  }

  // For run_by_size: whoever has to wait for another thread is not over in a millisecond.
  template <typename Lock>
  double steps_of(double steps) const {
    const Lock lock(mutex_, std::try_to_lock);
    return lock ? steps : std::numeric_limits<double>::infinity();
  }

  // The same of a search: centroids, rows in the lists that are probed, and candidates, all in lists of average length.
  double search_steps(std::size_t queries, std::size_t k, const IvfSearchOptions& options) const {
    const std::shared_lock lock(mutex_, std::try_to_lock);
    if (!lock) return std::numeric_limits<double>::infinity();
    const auto lists = static_cast<double>(index_.lists());
    const auto probes = static_cast<double>(options.probes != 0 ? options.probes : index_.probes());
    const auto candidates = static_cast<double>(options.rows.rows() == 0  ? k
                                                : options.candidates != 0 ? options.candidates
                                                                          : index_.candidates(k));
    const double rows = probes * static_cast<double>(index_.size()) / lists;
    return static_cast<double>(queries) * ((lists + candidates) * static_cast<double>(index_.dim()) +
                                           rows * static_cast<double>(index_.code_bytes()));
  }

  // Ctrl-C is answered also while another thread works on the index.
  template <typename Lock>
  Lock wait_for(const Context& own) const {
    Lock lock(mutex_, std::defer_lock);
    while (!lock.try_lock_for(std::chrono::milliseconds(20))) check(own);
    return lock;
  }

  // Threads do not survive a fork.
  Context changing_context() const {
    if (machine_.memory_limit != 0 && owner_ == getpid()) return context_;
    return context_for(machine_.device, machine_.threads, machine_.memory_limit, machine_.isa);
  }

  // What the index and so many bytes leave of the limit; 0: there is none.
  std::uint64_t require_room(std::uint64_t bytes) const {
    if (machine_.memory_limit == 0) return 0;
    const std::uint64_t taken = context_.memory_used() + bytes;
    if (taken < machine_.memory_limit) return machine_.memory_limit - taken;
    throw Error(ErrorCode::out_of_memory, "the index, converted copies and new rows take " +
                                              std::to_string(taken) + " bytes, the memory limit is " +
                                              std::to_string(machine_.memory_limit));
  }

  Ivf index_;
  Context context_;
  Machine machine_;
  pid_t owner_ = getpid();
  mutable Mutex mutex_;            // guards the rows and probes of the index
  std::atomic<std::size_t> size_;  // known without waiting for who changes it
};

// train(context, rows) makes the index.
template <typename Train>
std::unique_ptr<InvertedFile> train_index(nb::handle rows, const std::string& rows_type, std::uint64_t seed,
                                          Machine machine, nb::handle progress, const Train& train) {
  const Context context =
      context_for(machine.device, machine.threads, machine.memory_limit, machine.isa, seed);
  const BorrowedRows borrowed(rows, parse_element_type(rows_type), "rows");
  std::optional<Ivf> trained;
  run(context, progress, [&](const Context& own) { trained.emplace(train(own, borrowed.view())); });
  machine.seed = seed;
  return std::make_unique<InvertedFile>(std::move(*trained), context, std::move(machine));
}

std::unique_ptr<InvertedFile> train_flat(nb::handle rows, const std::string& rows_type,
                                         const std::string& metric, std::uint64_t lists,
                                         std::uint64_t iterations, std::uint64_t rows_per_list,
                                         std::uint64_t seed, const std::string& device, int threads,
                                         std::uint64_t memory_limit, const std::string& isa,
                                         nb::handle progress) {
  const IvfFlatOptions options{.metric = parse_metric(metric),
                               .lists = lists,
                               .iterations = iterations,
                               .rows_per_list = rows_per_list};
  return train_index(
      rows, rows_type, seed, {device, threads, memory_limit, isa}, progress,
      [&](const Context& own, const RowsView& view) { return IvfFlat::train(own, view, options); });
}

std::unique_ptr<InvertedFile> train_product(nb::handle rows, const std::string& rows_type,
                                            const std::string& metric, std::uint64_t lists,
                                            std::uint64_t iterations, std::uint64_t rows_per_list,
                                            std::uint64_t code_bytes, unsigned bits, std::uint64_t seed,
                                            const std::string& device, int threads,
                                            std::uint64_t memory_limit, const std::string& isa,
                                            nb::handle progress) {
  const IvfPqOptions options{.metric = parse_metric(metric),
                             .lists = lists,
                             .iterations = iterations,
                             .rows_per_list = rows_per_list,
                             .code_bytes = code_bytes,
                             .bits = bits};
  return train_index(
      rows, rows_type, seed, {device, threads, memory_limit, isa}, progress,
      [&](const Context& own, const RowsView& view) { return IvfPq::train(own, view, options); });
}

std::unique_ptr<InvertedFile> train_additive(nb::handle rows, const std::string& rows_type,
                                             const std::string& metric, std::uint64_t lists,
                                             std::uint64_t iterations, std::uint64_t rows_per_list,
                                             std::uint64_t code_bytes, std::uint64_t rounds,
                                             std::uint64_t train_iterations, std::uint64_t encode_iterations,
                                             std::uint64_t seed, const std::string& device, int threads,
                                             std::uint64_t memory_limit, const std::string& isa,
                                             nb::handle progress) {
  const IvfLsqOptions options{.metric = parse_metric(metric),
                              .lists = lists,
                              .iterations = iterations,
                              .rows_per_list = rows_per_list,
                              .code_bytes = code_bytes,
                              .rounds = rounds,
                              .train_iterations = train_iterations,
                              .encode_iterations = encode_iterations};
  return train_index(
      rows, rows_type, seed, {device, threads, memory_limit, isa}, progress,
      [&](const Context& own, const RowsView& view) { return IvfLsq::train(own, view, options); });
}

std::unique_ptr<InvertedFile> load_index(const std::filesystem::path& path, const std::string& device,
                                         int threads, std::uint64_t memory_limit, const std::string& isa) {
  const Context context = context_for(device, threads, memory_limit, isa);
  std::optional<Ivf> loaded;
  run(context, nb::none(), [&](const Context& own) { loaded.emplace(load_ivf(own, path)); });
  return std::make_unique<InvertedFile>(std::move(*loaded), context,
                                        Machine{device, threads, memory_limit, isa});
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
      .def("add", &InvertedFile::add, nb::arg("rows"), nb::arg("rows_type"),
           nb::arg("ids").noconvert().none(), nb::arg("copied_bytes"), nb::arg("progress").none())
      .def("remove", &InvertedFile::remove, nb::arg("ids").noconvert(), nb::arg("progress").none(),
           "How many rows went.")
      .def("merge", &InvertedFile::merge, nb::arg("other"), nb::arg("progress").none())
      .def("empty_copy", &InvertedFile::empty_copy)
      .def("search", &InvertedFile::search, nb::arg("queries"), nb::arg("queries_type"), nb::arg("k"),
           nb::arg("probes"), nb::arg("rows").none(), nb::arg("rows_type"), nb::arg("candidates"),
           nb::arg("copied_bytes"), nb::arg("progress").none(), "ids and distances [queries, k]")
      .def("calibrate", &InvertedFile::calibrate, nb::arg("rows"), nb::arg("rows_type"), nb::arg("recall"),
           nb::arg("queries"), nb::arg("rerank"), nb::arg("copied_bytes"), nb::arg("progress").none(),
           "The fields of Calibration.")
      .def("save", &InvertedFile::save_to, nb::arg("path"))
      .def("list_size", &InvertedFile::list_size, nb::arg("list"))
      .def_prop_ro("size", &InvertedFile::size, "Rows.")
      .def_prop_ro("dim", [](const InvertedFile& file) { return file.index().dim(); })
      .def_prop_ro("lists", [](const InvertedFile& file) { return file.index().lists(); })
      .def_prop_ro("code_bytes", [](const InvertedFile& file) { return file.index().code_bytes(); })
      .def_prop_ro("metric", &InvertedFile::metric)
      .def_prop_ro("codec", &InvertedFile::codec, "What is kept of a row: flat, pq or lsq.")
      .def_prop_ro("centroids", centroids_of, "[lists, dim]")
      .def_prop_ro("measured", &InvertedFile::measured, "The fields of Calibration, or None.")
      .def_prop_ro("candidates", &InvertedFile::candidates)
      .def_prop_rw("provenance", &InvertedFile::provenance, &InvertedFile::set_provenance)
      .def_prop_rw("probes", &InvertedFile::probes, &InvertedFile::set_probes);
  module.def("train_ivf_flat", train_flat, nb::arg("rows"), nb::arg("rows_type"), nb::arg("metric"),
             nb::arg("lists"), nb::arg("iterations"), nb::arg("rows_per_list"), nb::arg("seed"),
             nb::arg("device"), nb::arg("threads"), nb::arg("memory_limit"), nb::arg("isa"),
             nb::arg("progress").none());
  module.def("train_ivf_pq", train_product, nb::arg("rows"), nb::arg("rows_type"), nb::arg("metric"),
             nb::arg("lists"), nb::arg("iterations"), nb::arg("rows_per_list"), nb::arg("code_bytes"),
             nb::arg("bits"), nb::arg("seed"), nb::arg("device"), nb::arg("threads"), nb::arg("memory_limit"),
             nb::arg("isa"), nb::arg("progress").none());
  module.def("train_ivf_lsq", train_additive, nb::arg("rows"), nb::arg("rows_type"), nb::arg("metric"),
             nb::arg("lists"), nb::arg("iterations"), nb::arg("rows_per_list"), nb::arg("code_bytes"),
             nb::arg("rounds"), nb::arg("train_iterations"), nb::arg("encode_iterations"), nb::arg("seed"),
             nb::arg("device"), nb::arg("threads"), nb::arg("memory_limit"), nb::arg("isa"),
             nb::arg("progress").none());
  module.def("load_ivf", load_index, nb::arg("path"), nb::arg("device"), nb::arg("threads"),
             nb::arg("memory_limit"), nb::arg("isa"));
}

}  // namespace nearwise::python

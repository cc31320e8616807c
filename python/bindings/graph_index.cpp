// Graph indexes for Python.
#include "nearwise/graph_index.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <unistd.h>

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "bindings.h"
#include "nearwise/error.h"
#include "nearwise/graph_index_export.h"
#include "results.h"

namespace nearwise::python {
namespace {

// The fields of Python's GraphCalibration in their order.
using GraphCalibrationFields = std::tuple<double, std::size_t, std::size_t, Estimate, std::size_t, Estimate>;

GraphCalibrationFields fields_of(const GraphCalibration& found) {
  return {found.target_recall,         found.neighbors,   found.beam,
          recall_fields(found.recall), found.beam_of_100, recall_fields(found.recall_of_100)};
}

OnDuplicate to_on_duplicate(const std::string& name) {
  return name == "replace" ? OnDuplicate::replace : name == "keep" ? OnDuplicate::keep : OnDuplicate::refuse;
}

// To C++, no ids mean consecutive numbers.
void check_id_count(const std::optional<NumpyIds>& ids, const BorrowedRows& rows) {
  if (ids && ids->size() != rows.view().rows())
    throw Error(ErrorCode::invalid_argument, "expected one id per vector, got " +
                                                 std::to_string(ids->size()) + " for " +
                                                 std::to_string(rows.view().rows()) + " vectors");
}

// An index and the context it was made with, whose memory budget holds it: changes use it as well. Every
// search has a context of its own, for the reasons given in prepared_base.cpp.
//
// The index orders the calls of threads. Methods that may wait for another thread do not hold the interpreter
// lock.
class SearchGraph {
 public:
  SearchGraph(GraphIndex index, Context context) : index_(std::move(index)), context_(std::move(context)) {}

  // settings.memory_limit is for the index and this call together, in all methods.
  std::size_t add(const BorrowedRows& rows, const std::optional<NumpyIds>& ids,
                  const std::string& on_duplicate, const Settings& settings, nb::handle progress) {
    const std::span<const Id> given = ids ? span_of(*ids) : std::span<const Id>();
    check_id_count(ids, rows);
    const OnDuplicate duplicates = to_on_duplicate(on_duplicate);
    std::size_t added = 0;
    run(changing_context(settings), progress,
        [&](const Context& own) { added = index_.add(own, rows.view(), given, duplicates); });
    return added;
  }

  void update(const NumpyIds& ids, const BorrowedRows& rows, const Settings& settings, nb::handle progress) {
    run(changing_context(settings), progress,
        [&](const Context& own) { index_.update(own, span_of(ids), rows.view()); });
  }

  std::size_t remove(const NumpyIds& ids, const Settings& settings, nb::handle progress) {
    std::size_t removed = 0;
    run(changing_context(settings), progress,
        [&](const Context& own) { removed = index_.remove(own, span_of(ids)); });
    return removed;
  }

  void compact(const Settings& settings, nb::handle progress) {
    run(changing_context(settings), progress, [&](const Context& own) { index_.compact(own); });
  }

  NumpyNeighbors search(const BorrowedRows& queries, std::uint64_t k, std::uint64_t beam,
                        const Filter* filter, const Settings& settings, nb::handle progress) const {
    const GraphSearchOptions options = {.beam = optional_of(beam), .filter = filter_of(filter)};
    return to_numpy(
        result_of(settings_of_call(settings), progress, steps(queries, k, options),
                  [&](const Context& own) { return index_.search(own, queries.view(), k, options); }));
  }

  NumpyRangeNeighbors range_search(const BorrowedRows& queries, float radius, std::uint64_t beam,
                                   const Filter* filter, const Settings& settings,
                                   nb::handle progress) const {
    const GraphSearchOptions options = {.beam = optional_of(beam), .filter = filter_of(filter)};
    return to_numpy(result_of(settings_of_call(settings), progress, [&](const Context& own) {
      return index_.range_search(own, queries.view(), radius, options);
    }));
  }

  GraphCalibrationFields calibrate(const BorrowedRows* queries, double target_recall, std::uint64_t sample,
                                   const Settings& settings, nb::handle progress) {
    const GraphCalibrationOptions options = {.target_recall = target_recall,
                                             .sample = sample,
                                             .queries = queries == nullptr ? RowsView() : queries->view()};
    return fields_of(result_of(settings_of_call(settings), progress,
                               [&](const Context& own) { return index_.calibrate(own, options); }));
  }

  std::optional<GraphCalibrationFields> calibration() const {
    return without_lock([&]() -> std::optional<GraphCalibrationFields> {
      const std::optional<GraphCalibration> found = index_.calibration();
      if (!found) return {};
      return fields_of(*found);
    });
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
  void save_to(const std::filesystem::path& path) const {
    run(context_for({}), nb::none(), [&](const Context&) { save(index_, path); });
  }
  void export_to_hnswlib(const std::filesystem::path& path) const {
    run(context_for({}), nb::none(), [&](const Context& own) { export_hnswlib(own, index_, path); });
  }
  void export_to_svs(const std::filesystem::path& folder) const {
    run(context_for({}), nb::none(), [&](const Context& own) { export_svs(own, index_, folder); });
  }
  void export_to_diskann(const std::filesystem::path& folder) const {
    run(context_for({}), nb::none(), [&](const Context& own) { export_diskann(own, index_, folder); });
  }
  std::size_t beam() const {
    return without_lock([&] { return index_.beam(); });
  }
  void set_beam(std::size_t beam) {
    without_lock([&] { index_.set_beam(beam); });
  }
  std::map<std::string, std::string> provenance() const {
    return without_lock([&] { return index_.provenance(); });
  }
  void set_provenance(const std::map<std::string, std::string>& provenance) {
    without_lock([&] { index_.set_provenance(provenance); });
  }

  std::size_t entries() const {
    return without_lock([&] { return index_.entries(); });
  }
  std::size_t bytes_per_vector() const {
    return without_lock([&] { return index_.bytes_per_vector(); });
  }
  // For properties that do not wait.
  const GraphIndex& index() const { return index_; }
  std::string device() const { return name(context_.place()); }
  std::string metric() const { return std::string(name(index_.metric())); }

 private:
  // Codes that a search reads, about: half of the rows that the beam leads to. A call that waits for a change
  // is not brief.
  double steps(const BorrowedRows& queries, std::uint64_t k, const GraphSearchOptions& options) const {
    if (index_.is_changing()) return std::numeric_limits<double>::infinity();
    const auto rows = options.filter.is_trivial()
                          ? static_cast<double>(options.beam.value_or(index_.beam(k)) * index_.degree()) / 2
                          : static_cast<double>(index_.size());
    return static_cast<double>(queries.view().rows()) * rows * static_cast<double>(index_.dim());
  }

  // With a memory limit, the context whose budget holds the index; but threads do not survive a fork.
  Context changing_context(const Settings& settings) const {
    check_available(settings);
    if (context_.memory_limit() != 0 && owner_ == getpid()) return context_;
    if (context_.memory_limit() == 0) return context_for(settings);
    return context_for(settings.with_memory_limit(context_.memory_limit()));
  }

  // For a call on the index, which has its own budget.
  Settings settings_of_call(const Settings& settings) const {
    check_available(settings);
    return settings.with_memory_in_use(used());
  }

  std::uint64_t used() const { return context_.memory_limit() == 0 ? 0 : context_.memory_used(); }

  void check_available(const Settings& settings) const {
    if (settings.memory_limit == 0 || used() < settings.memory_limit) return;
    throw Error(ErrorCode::out_of_memory, "the index takes " + std::to_string(used()) +
                                              " bytes, the memory limit leaves " +
                                              std::to_string(settings.memory_limit));
  }

  GraphIndex index_;
  Context context_;
  pid_t owner_ = getpid();
};

std::unique_ptr<SearchGraph> made(const Settings& settings, nb::handle progress,
                                  const std::function<GraphIndex(const Context&)>& make) {
  const Context context = context_for(settings);
  std::optional<GraphIndex> index;
  run(context, progress, [&](const Context& own) { index.emplace(make(own)); });
  return std::make_unique<SearchGraph>(std::move(*index), context);
}

// Without a target recall the index is not calibrated.
std::unique_ptr<SearchGraph> make_search_graph(
    const BorrowedRows& rows,
    const std::optional<std::tuple<NumpyMatrix<const Id>, NumpyMatrix<const float>>>& graph,
    const std::optional<NumpyIds>& ids, std::optional<double> target_recall, const BorrowedRows* queries,
    const std::string& metric, std::uint64_t degree, double graph_recall, const Settings& settings,
    nb::handle progress) {
  const GraphIndexOptions options = {.metric = parse_metric(metric),
                                     .degree = degree,
                                     .graph_recall = graph_recall,
                                     .ids = ids ? span_of(*ids) : std::span<const Id>()};
  check_id_count(ids, rows);
  std::optional<GraphCalibrationOptions> calibration;
  if (target_recall)
    calibration = {.target_recall = *target_recall,
                   .queries = queries == nullptr ? RowsView() : queries->view()};
  if (!graph)
    return made(settings, progress, [&](const Context& own) {
      return GraphIndex::build(own, rows.view(), options, calibration);
    });
  return made(settings, progress, [&](const Context& own) {
    const KnnGraph neighbors = to_knn_graph(own, std::get<0>(*graph), std::get<1>(*graph), metric);
    return GraphIndex::from_knn_graph(own, neighbors, rows.view(), options, calibration);
  });
}

std::unique_ptr<SearchGraph> load_search_graph(const std::filesystem::path& path, const Settings& settings,
                                               nb::handle progress) {
  return made(settings, progress, [&](const Context& own) { return load_graph_index(own, path); });
}

}  // namespace

void bind_graph_index(nb::module_& module) {
  nb::class_<SearchGraph>(module, "GraphIndex", "A search graph.")
      .def("search", &SearchGraph::search, nb::arg("queries"), nb::arg("k"), nb::arg("beam"),
           nb::arg("filter").none(), nb::arg("settings"), nb::arg("progress").none(),
           "ids and distances [queries, k]")
      .def("range_search", &SearchGraph::range_search, nb::arg("queries"), nb::arg("radius"), nb::arg("beam"),
           nb::arg("filter").none(), nb::arg("settings"), nb::arg("progress").none(),
           "offsets [queries + 1], ids and distances")
      .def("calibrate", &SearchGraph::calibrate, nb::arg("queries").none(), nb::arg("target_recall"),
           nb::arg("sample"), nb::arg("settings"), nb::arg("progress").none(),
           "The fields of GraphCalibration.")
      .def("add", &SearchGraph::add, nb::arg("rows"), nb::arg("ids").none().noconvert(),
           nb::arg("on_duplicate"), nb::arg("settings"), nb::arg("progress").none(),
           "The number of vectors added or replaced.")
      .def("update", &SearchGraph::update, nb::arg("ids").noconvert(), nb::arg("rows"), nb::arg("settings"),
           nb::arg("progress").none())
      .def("remove", &SearchGraph::remove, nb::arg("ids").noconvert(), nb::arg("settings"),
           nb::arg("progress").none(), "The number of vectors removed.")
      .def("compact", &SearchGraph::compact, nb::arg("settings"), nb::arg("progress").none())
      .def("contains", &SearchGraph::contains, nb::arg("id"))
      .def("ids", &SearchGraph::ids, "Ascending.")
      .def("get", &SearchGraph::get, nb::arg("ids").noconvert(), "[ids, dim]")
      .def("save", &SearchGraph::save_to, nb::arg("path"))
      .def("export_hnswlib", &SearchGraph::export_to_hnswlib, nb::arg("path"))
      .def("export_svs", &SearchGraph::export_to_svs, nb::arg("folder"))
      .def("export_diskann", &SearchGraph::export_to_diskann, nb::arg("folder"))
      .def_prop_ro("size", [](const SearchGraph& graph) { return graph.index().size(); })
      .def_prop_ro("dim", [](const SearchGraph& graph) { return graph.index().dim(); })
      .def_prop_ro("degree", [](const SearchGraph& graph) { return graph.index().degree(); })
      .def_prop_ro("next_id", [](const SearchGraph& graph) { return graph.index().next_id(); })
      .def_prop_ro("entries", &SearchGraph::entries)
      .def_prop_ro("bytes_per_vector", &SearchGraph::bytes_per_vector)
      .def_prop_ro("device", &SearchGraph::device)
      .def_prop_ro("metric", &SearchGraph::metric)
      .def_prop_ro("calibration", &SearchGraph::calibration, "The fields of GraphCalibration, or None.")
      .def_prop_rw("beam", &SearchGraph::beam, &SearchGraph::set_beam)
      .def_prop_rw("provenance", &SearchGraph::provenance, &SearchGraph::set_provenance);
  module.def("make_graph_index", make_search_graph, nb::arg("rows"), nb::arg("graph").none(),
             nb::arg("ids").none().noconvert(), nb::arg("target_recall").none(), nb::arg("queries").none(),
             nb::arg("metric"), nb::arg("degree"), nb::arg("graph_recall"), nb::arg("settings"),
             nb::arg("progress").none());
  module.def("load_graph_index", load_search_graph, nb::arg("path"), nb::arg("settings"),
             nb::arg("progress").none());
}

}  // namespace nearwise::python

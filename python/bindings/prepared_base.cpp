// nearwise::Exact for Python.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <functional>
#include <optional>
#include <utility>

#include "bindings.h"
#include "nearwise/error.h"
#include "nearwise/exact.h"
#include "results.h"

namespace nearwise::python {
namespace {

// A prepared base and the Python object that owns its vectors. Every search has a context of its own: a
// shared memory limit would make concurrent searches exhaust each other's budget, and threads do not survive
// a fork.
class PreparedBase {
 public:
  PreparedBase(nb::handle_t<BorrowedRows> base, const std::string& metric, const Settings& settings,
               nb::handle progress)
      : rows_(nb::borrow(base)) {
    const ExactOptions options{.metric = parse_metric(metric)};
    prepare(settings, progress, [&](const Context& own) { return Exact::prepare(own, view(), options); });
  }

  PreparedBase to(const Settings& settings, nb::handle progress) const {
    PreparedBase moved(rows_);
    moved.prepare(settings, progress, [&](const Context& own) { return exact_->to(own); });
    return moved;
  }

  NumpyNeighbors search(const BorrowedRows& queries, std::uint64_t k, bool pad, const Filter* filter,
                        const Settings& settings, nb::handle progress) const {
    const ExactSearchOptions options = {.short_rows = pad ? ShortRows::pad : ShortRows::refuse,
                                        .filter = filter_of(filter)};
    return to_numpy(result_of(searching(settings), progress, steps(queries), [&](const Context& own) {
      return exact_->search(own, queries.view(), k, options);
    }));
  }

  NumpyRangeNeighbors range_search(const BorrowedRows& queries, float radius, const Filter* filter,
                                   const Settings& settings, nb::handle progress) const {
    return to_numpy(result_of(searching(settings), progress, steps(queries), [&](const Context& own) {
      return exact_->range_search(own, queries.view(), radius, {.filter = filter_of(filter)});
    }));
  }

  std::pair<std::size_t, std::size_t> shape() const { return {view().rows(), view().dim()}; }
  std::string device() const { return name(exact_->place()); }
  std::string metric() const { return std::string(name(exact_->metric())); }

 private:
  explicit PreparedBase(nb::object rows) : rows_(std::move(rows)) {}

  const RowsView& view() const { return nb::cast<const BorrowedRows&>(rows_).view(); }

  void prepare(const Settings& settings, nb::handle progress,
               const std::function<Exact(const Context&)>& prepare_in) {
    const Context context = context_for(settings);
    run_by_size(context, progress, static_cast<double>(view().rows()) * static_cast<double>(view().dim()),
                [&](const Context& own) { exact_.emplace(prepare_in(own)); });
    if (settings.memory_limit != 0) kept_bytes_ = context.memory_used();
  }

  double steps(const BorrowedRows& queries) const { return multiplications(queries.view(), exact_->base()); }

  // Those of a search, with what the prepared base leaves of the limit.
  Settings searching(const Settings& settings) const {
    const std::uint64_t limit = settings.memory_limit;
    if (limit == 0 || kept_bytes_ < limit) return settings.with_memory_in_use(kept_bytes_);
    throw Error(ErrorCode::out_of_memory, "Exact: the prepared base takes " + std::to_string(kept_bytes_) +
                                              " bytes, the memory limit leaves " + std::to_string(limit));
  }

  nb::object rows_;  // declared before exact_, which refers to them
  std::optional<Exact> exact_;
  std::uint64_t kept_bytes_ = 0;  // counted only under a limit
};

}  // namespace

void bind_prepared_base(nb::module_& module) {
  nb::class_<PreparedBase>(module, "PreparedBase", "A base prepared for many searches.")
      .def(nb::init<nb::handle_t<BorrowedRows>, const std::string&, const Settings&, nb::handle>(),
           nb::arg("base"), nb::arg("metric"), nb::arg("settings"), nb::arg("progress").none())
      .def("search", &PreparedBase::search, nb::arg("queries"), nb::arg("k"), nb::arg("pad"),
           nb::arg("filter").none(), nb::arg("settings"), nb::arg("progress").none(),
           "ids and distances [queries, k]")
      .def("range_search", &PreparedBase::range_search, nb::arg("queries"), nb::arg("radius"),
           nb::arg("filter").none(), nb::arg("settings"), nb::arg("progress").none(),
           "offsets [queries + 1], ids and distances")
      .def("to", &PreparedBase::to, nb::arg("settings"), nb::arg("progress").none(),
           "The same base prepared on another device.")
      .def_prop_ro("shape", &PreparedBase::shape, "Vectors and dimension.")
      .def_prop_ro("device", &PreparedBase::device)
      .def_prop_ro("metric", &PreparedBase::metric);
}

}  // namespace nearwise::python

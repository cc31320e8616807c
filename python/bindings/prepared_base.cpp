// nearwise::Exact for Python: a base prepared once, with all that must outlive the call that made it.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "bindings.h"
#include "nearwise/error.h"
#include "nearwise/exact.h"

namespace nearwise::python {
namespace {

// Every search takes a context of its own for the same place: one limit shared by searches at once would make them
// refuse each other's memory, and threads do not survive a fork.
class PreparedBase {
 public:
  PreparedBase(nb::handle base, const std::string& base_type, const std::string& metric,
               const std::string& device, int threads, std::uint64_t memory_limit, const std::string& isa,
               nb::handle progress)
      : PreparedBase(std::make_shared<const BorrowedRows>(base, parse_element_type(base_type), "base"),
                     device, threads, memory_limit, isa) {
    const ExactOptions options{.metric = parse_metric(metric)};
    prepare(progress, [&](const Context& own) { return Exact::prepare(own, rows_->view(), options); });
  }

  PreparedBase to(const std::string& device, const std::string& isa, nb::handle progress) const {
    PreparedBase moved(rows_, device, threads_, memory_limit_, isa);
    moved.prepare(progress, [&](const Context& own) { return exact_->to(own); });
    return moved;
  }

  // copied_bytes: what Python has spent of the limit on a converted copy of the queries.
  NumpyNeighbors knn(nb::handle queries, const std::string& queries_type, std::uint64_t k,
                     const std::string& short_rows, std::uint64_t copied_bytes, nb::handle progress) const {
    const ShortRows padding = parse_short_rows(short_rows);
    std::optional<Neighbors> found;
    search(queries, queries_type, copied_bytes, progress,
           [&](const Context& own, const RowsView& view) { found = exact_->search(own, view, k, padding); });
    return to_numpy(std::move(*found));
  }

  NumpyRangeNeighbors range_search(nb::handle queries, const std::string& queries_type, float radius,
                                   std::uint64_t copied_bytes, nb::handle progress) const {
    std::optional<RangeNeighbors> found;
    search(queries, queries_type, copied_bytes, progress, [&](const Context& own, const RowsView& view) {
      found = exact_->range_search(own, view, radius);
    });
    return to_numpy(std::move(*found));
  }

  std::pair<std::size_t, std::size_t> shape() const { return {rows_->view().rows(), rows_->view().dim()}; }
  std::string device() const { return name(exact_->place()); }
  std::string metric() const { return std::string(name(exact_->metric())); }

 private:
  PreparedBase(std::shared_ptr<const BorrowedRows> rows, const std::string& device, int threads,
               std::uint64_t memory_limit, const std::string& isa)
      : rows_(std::move(rows)), device_(device), threads_(threads), memory_limit_(memory_limit), isa_(isa) {}

  void prepare(nb::handle progress, const std::function<Exact(const Context&)>& prepare_in) {
    const Context context = context_for(device_, threads_, memory_limit_, isa_);
    const RowsView& view = rows_->view();
    run_by_size(context, progress, static_cast<double>(view.rows()) * static_cast<double>(view.dim()),
                [&](const Context& own) { exact_.emplace(prepare_in(own)); });
    if (memory_limit_ != 0) kept_bytes_ = context.memory_used();
  }

  void search(nb::handle queries, const std::string& queries_type, std::uint64_t copied_bytes,
              nb::handle progress,
              const std::function<void(const Context&, const RowsView&)>& search_rows) const {
    const Context context = context_for(device_, threads_, rest_of_limit(copied_bytes), isa_);
    const BorrowedRows query_rows(queries, parse_element_type(queries_type), "queries");
    run_by_size(context, progress, multiplications(query_rows.view(), rows_->view()),
                [&](const Context& own) { search_rows(own, query_rows.view()); });
  }

  std::uint64_t rest_of_limit(std::uint64_t copied_bytes) const {
    if (memory_limit_ == 0) return 0;
    const std::uint64_t taken = kept_bytes_ + copied_bytes;
    if (taken < memory_limit_) return memory_limit_ - taken;
    throw Error(ErrorCode::out_of_memory, "Exact: the prepared base and the converted queries take " +
                                              std::to_string(taken) + " bytes, the memory limit leaves " +
                                              std::to_string(memory_limit_));
  }

  std::shared_ptr<const BorrowedRows> rows_;  // before exact_, which looks at them
  std::string device_;
  int threads_;
  std::uint64_t memory_limit_;
  std::string isa_;
  std::optional<Exact> exact_;
  std::uint64_t kept_bytes_ = 0;  // counted only under a limit
};

}  // namespace

void bind_prepared_base(nb::module_& module) {
  nb::class_<PreparedBase>(module, "PreparedBase", "A base prepared for many searches.")
      .def(nb::init<nb::handle, const std::string&, const std::string&, const std::string&, int,
                    std::uint64_t, const std::string&, nb::handle>(),
           nb::arg("base"), nb::arg("base_type"), nb::arg("metric"), nb::arg("device"), nb::arg("threads"),
           nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none())
      .def("knn", &PreparedBase::knn, nb::arg("queries"), nb::arg("queries_type"), nb::arg("k"),
           nb::arg("short_rows"), nb::arg("copied_bytes"), nb::arg("progress").none(),
           "ids and distances [queries, k]")
      .def("range_search", &PreparedBase::range_search, nb::arg("queries"), nb::arg("queries_type"),
           nb::arg("radius"), nb::arg("copied_bytes"), nb::arg("progress").none(),
           "offsets [queries + 1], ids and distances")
      .def("to", &PreparedBase::to, nb::arg("device"), nb::arg("isa"), nb::arg("progress").none(),
           "The same base prepared on another device.")
      .def_prop_ro("shape", &PreparedBase::shape, "Rows and dimension.")
      .def_prop_ro("device", &PreparedBase::device)
      .def_prop_ro("metric", &PreparedBase::metric);
}

}  // namespace nearwise::python

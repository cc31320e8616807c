// Results of operations that run by the settings of a call from Python.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "bindings.h"
#include "nearwise/recall_estimate.h"

namespace nearwise::python {

using NumpyIds = nb::ndarray<nb::numpy, const Id, nb::ndim<1>, nb::c_contig>;
inline std::span<const Id> span_of(const NumpyIds& ids) { return {ids.data(), ids.size()}; }

// The fields of Python's RecallEstimate: value, low, high, rows.
using Estimate = std::tuple<double, double, double, std::size_t>;
inline Estimate recall_fields(const RecallEstimate& recall) {
  return {recall.value, recall.low, recall.high, recall.rows};
}

// Returns work(context), run as `run` runs it.
template <typename Work>
auto result_of(const Settings& settings, nb::handle progress, const Work& work) {
  std::optional<std::invoke_result_t<Work, const Context&>> found;
  run(context_for(settings), progress, [&](const Context& own) { found.emplace(work(own)); });
  return std::move(*found);
}

// The same as `run_by_size` runs it.
template <typename Work>
auto result_of(const Settings& settings, nb::handle progress, double steps, const Work& work) {
  std::optional<std::invoke_result_t<Work, const Context&>> found;
  run_by_size(context_for(settings), progress, steps, [&](const Context& own) { found.emplace(work(own)); });
  return std::move(*found);
}

// The same for functions without a context.
template <typename Work>
auto result_of(const Work& work) {
  std::optional<std::invoke_result_t<Work>> found;
  run([&] { found.emplace(work()); });
  return std::move(*found);
}

// Of functions on a whole graph, for `run_by_size`: each edge takes some accesses to memory.
inline double graph_steps(const NumpyMatrix<const Id>& ids) { return 32.0 * static_cast<double>(ids.size()); }

// Returns work() without the interpreter lock, on the calling thread: for work of milliseconds.
template <typename Work>
auto without_lock(const Work& work) {
  const nb::gil_scoped_release released;
  return work();
}

}  // namespace nearwise::python

// Results of operations that run by the settings of a call from Python.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "bindings.h"

namespace nearwise::python {

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

// Returns work() without the interpreter lock, on the calling thread: for work of milliseconds.
template <typename Work>
auto without_lock(const Work& work) {
  const nb::gil_scoped_release released;
  return work();
}

}  // namespace nearwise::python

// Calls operations of a context's backend.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "backend/backend.h"
#include "core/check.h"
#include "core/lost_pages.h"

namespace nearwise {

inline std::unique_ptr<Stream> open_stream(const Context& context) {
  return context.state().backend.open(context.state());
}

// Throws Error(corrupt) if vectors among the arguments of an operation lie in a mapped file that has lost
// pages.
template <typename Argument>
void check_input([[maybe_unused]] const Argument& argument) {
  if constexpr (std::is_same_v<Argument, RowsView>) {
    check_mapped(argument);
  } else {
    if constexpr (requires { argument.rows; }) check_input(argument.rows);
    if constexpr (requires { argument.base; }) check_input(argument.base);
    if constexpr (requires { argument.queries; }) check_input(argument.queries);
    if constexpr (requires { argument.query_rows; }) check_input(argument.query_rows);
  }
}

// Calls the operation, or throws Error(unsupported) naming the operation and the backend.
template <typename Function, typename... Args>
decltype(auto) dispatch(Function Ops::*operation, const char* name, Stream& stream, Args&&... args) {
  const Function function = stream.context.backend.ops.*operation;
  if (function == nullptr)
    fail(ErrorCode::unsupported, "{}: the {} backend does not implement it", name,
         stream.context.backend.name);
  const LostPagesScope lost_pages;
  const auto check = [&] {
    check_lost_pages();
    (check_input(args), ...);
  };
  if constexpr (std::is_void_v<std::invoke_result_t<Function, Stream&, Args...>>) {
    function(stream, args...);
    check();
  } else {
    auto result = function(stream, args...);
    check();
    return result;
  }
}

}  // namespace nearwise

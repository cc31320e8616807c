// Calls operations of a context's backend.
#pragma once

#include <memory>
#include <utility>

#include "backend/backend.h"
#include "core/check.h"

namespace nearwise {

inline std::unique_ptr<Stream> open_stream(const Context& context) {
  return context.state().backend.open(context.state());
}

// Calls the operation, or throws Error(unsupported) naming the operation and the backend.
template <typename Function, typename... Args>
decltype(auto) dispatch(Function Ops::*operation, const char* name, Stream& stream, Args&&... args) {
  const Function function = stream.context.backend.ops.*operation;
  if (function == nullptr)
    fail(ErrorCode::unsupported, "{}: the {} backend does not implement it", name,
         stream.context.backend.name);
  return function(stream, std::forward<Args>(args)...);
}

}  // namespace nearwise

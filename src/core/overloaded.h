// A visitor of std::variant made of lambdas, one per alternative.
#pragma once

namespace nearwise {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace nearwise

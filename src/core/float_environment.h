// The default floating-point environment (round to nearest, denormals kept) for the life of a scope.
#pragma once

#include <cfenv>

namespace nearwise {

class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() noexcept {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&saved_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

}  // namespace nearwise

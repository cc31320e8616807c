// The default floating-point environment (round to nearest, denormals kept) for the life of a scope.
//
// Operations and their tasks begin with one, so that it is also the scope in which lost pages of mapped files
// are errors (core/lost_pages.h).
#pragma once

#include <cfenv>

#include "core/lost_pages.h"

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
  const LostPagesScope lost_pages_;
  std::fenv_t saved_;
};

}  // namespace nearwise

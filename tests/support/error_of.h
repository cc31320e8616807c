// What a call throws, for tests that look at its code and message.
#pragma once

#include "nearwise/error.h"

namespace nearwise::support {

// The error that a call throws; code internal and an empty message where it throws none.
template <typename Function>
Error error_of(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::internal, ""};
}

}  // namespace nearwise::support

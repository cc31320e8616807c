// How a function of the C interface runs: exceptions become a status and the message of the thread.
#pragma once

#include <exception>
#include <new>

#include "nearwise/c/nearwise_c.h"
#include "nearwise/error.h"

namespace nearwise::c_api {

nearwise_status status_of(ErrorCode code) noexcept;

// For nearwise_last_error(). Returns the status.
nearwise_status remember(nearwise_status status, const char* message) noexcept;

// Nothing is thrown through C.
template <typename Body>
nearwise_status call(const Body& body) noexcept {
  try {
    body();
    return NEARWISE_OK;
  } catch (const Error& error) {
    return remember(status_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return remember(NEARWISE_OUT_OF_MEMORY, "no memory is left");
  } catch (const std::exception& error) {
    return remember(NEARWISE_INTERNAL, error.what());
  } catch (...) {
    return remember(NEARWISE_INTERNAL, "an unknown exception");
  }
}

}  // namespace nearwise::c_api

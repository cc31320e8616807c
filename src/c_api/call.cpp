#include "c_api/call.h"

#include <string>

#include "nearwise/machine.h"

namespace nearwise::c_api {
namespace {

thread_local std::string last_text;
thread_local const char* last_message = "";

}  // namespace

nearwise_status status_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument: return NEARWISE_INVALID_ARGUMENT;
    case ErrorCode::not_found: return NEARWISE_NOT_FOUND;
    case ErrorCode::cannot_create: return NEARWISE_CANNOT_CREATE;
    case ErrorCode::io: return NEARWISE_IO;
    case ErrorCode::corrupt: return NEARWISE_CORRUPT;
    case ErrorCode::out_of_memory: return NEARWISE_OUT_OF_MEMORY;
    case ErrorCode::unsupported: return NEARWISE_UNSUPPORTED;
    case ErrorCode::device: return NEARWISE_DEVICE;
    case ErrorCode::cancelled: return NEARWISE_CANCELLED;
    case ErrorCode::internal: break;
  }
  return NEARWISE_INTERNAL;
}

nearwise_status remember(nearwise_status status, const char* message) noexcept {
  try {
    last_text = message;
    last_message = last_text.c_str();
  } catch (...) {
    last_message = "no memory is left for the message";
  }
  return status;
}

}  // namespace nearwise::c_api

const char* nearwise_last_error() { return nearwise::c_api::last_message; }

const char* nearwise_version() {
  static const std::string text = nearwise::version();
  return text.c_str();
}

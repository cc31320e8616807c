// Arguments of the C interface as those of the C++ functions. Everything throws Error(invalid_argument) that
// begins with the name of the C function.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/check.h"
#include "nearwise/c/nearwise_c.h"
#include "nearwise/filter.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace nearwise::c_api {

// More is an uninitialised size.
inline constexpr std::size_t most_option_bytes = 4096;

// What `pointer` points to; `name` is that of the argument.
template <typename Value>
Value& deref(const char* function, const char* name, Value* pointer) {
  require(pointer != nullptr, "{}: {} must not be NULL", function, name);
  return *pointer;
}

// Throws unless this can be the size of a struct.
void check_size(const char* function, std::size_t size, std::size_t known);
// Throws Error(unsupported) unless the bytes after those `known` are zero.
void check_unknown_fields(const char* function, const void* options, std::size_t size, std::size_t known);

// Options of the caller's size: fields that its header does not have are zero, those that this library does
// not know must be.
template <typename Options>
Options options_of(const char* function, const Options* given) {
  Options options = {};
  if (given == nullptr) return options;
  check_size(function, given->size, sizeof(Options));
  check_unknown_fields(function, given, given->size, sizeof(Options));
  std::memcpy(&options, given, std::min(given->size, sizeof(Options)));
  return options;
}

// Writes a result to a struct of the caller's size: fields that this library does not know become zero.
template <typename Result>
void write_result(const Result& result, Result* out) {
  const std::size_t size = out->size;
  std::memset(static_cast<void*>(out), 0, size);
  std::memcpy(out, &result, std::min(size, sizeof(Result)));
  out->size = size;
}

RowsView rows_of(const char* function, const char* name, const nearwise_rows* rows);
Metric metric_of(const char* function, nearwise_metric metric);
Filter filter_of(const char* function, const nearwise_filter* filter);
// A share above 0 and at most 1; 0: the default.
double share_of(const char* function, const char* name, double given, double otherwise);
std::span<const Id> ids_of(const std::int64_t* ids, std::size_t count);

// Copies a result to the caller's arrays; distances may be null.
void write_neighbors(const Neighbors& neighbors, std::int64_t* ids, float* distances);

}  // namespace nearwise::c_api

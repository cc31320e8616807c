#include "c_api/arguments.h"

#include <algorithm>
#include <type_traits>

#include "core/checked.h"

namespace nearwise::c_api {

static_assert(std::is_same_v<Id, std::int64_t>);

void check_size(const char* function, std::size_t size, std::size_t known) {
  require(size >= sizeof(std::size_t) && size <= most_option_bytes,
          "{}: the size of a struct must be its sizeof, {} in this version, got {}", function, known, size);
}

void check_unknown_fields(const char* function, const void* options, std::size_t size, std::size_t known) {
  if (size <= known) return;
  const auto* const bytes = static_cast<const unsigned char*>(options);
  if (std::any_of(bytes + known, bytes + size, [](unsigned char byte) { return byte != 0; }))
    fail(ErrorCode::unsupported, "{}: the options have fields that nearwise {} does not know", function,
         nearwise_version());
}

RowsView rows_of(const char* function, const char* name, const nearwise_rows* rows) {
  const nearwise_rows& given = deref(function, name, rows);
  require(given.type >= NEARWISE_F32 && given.type <= NEARWISE_I8,
          "{}: {}: an element type from {} to {} expected, got {}", function, name, NEARWISE_F32, NEARWISE_I8,
          given.type);
  require(given.rows == 0 || given.data != nullptr, "{}: {}: data must not be NULL", function, name);
  const auto type = static_cast<ElementType>(given.type);
  const std::size_t row_bytes =
      checked_multiply<std::size_t>(given.dim, element_size(type), function, ErrorCode::invalid_argument);
  const std::size_t stride = given.stride_bytes == 0 ? row_bytes : given.stride_bytes;
  require(stride >= row_bytes, "{}: {}: stride_bytes must be at least the {} of a vector, got {}", function,
          name, row_bytes, stride);
  checked_multiply<std::size_t>(given.rows, stride, function, ErrorCode::invalid_argument);
  return {given.data, type, given.rows, given.dim, stride};
}

Metric metric_of(const char* function, nearwise_metric metric) {
  require(metric >= NEARWISE_SQEUCLIDEAN && metric <= NEARWISE_COSINE,
          "{}: a metric from {} to {} expected, got {}", function, NEARWISE_SQEUCLIDEAN, NEARWISE_COSINE,
          metric);
  return static_cast<Metric>(metric);
}

Filter filter_of(const char* function, const nearwise_filter* filter) {
  if (filter == nullptr) return {};
  const bool is_mask = filter->kind == NEARWISE_FILTER_MASK;
  require(is_mask || filter->kind == NEARWISE_FILTER_ALLOW || filter->kind == NEARWISE_FILTER_DENY,
          "{}: a filter of kind {}, {} or {} expected, got {}", function, NEARWISE_FILTER_MASK,
          NEARWISE_FILTER_ALLOW, NEARWISE_FILTER_DENY, filter->kind);
  require(filter->count == 0 || (is_mask ? filter->mask != nullptr : filter->ids != nullptr),
          "{}: the {} of a filter must not be NULL", function, is_mask ? "mask" : "ids");
  if (is_mask) return Filter::mask({filter->mask, filter->count});
  const std::span<const Id> ids(filter->ids, filter->count);
  return filter->kind == NEARWISE_FILTER_ALLOW ? Filter::allow(ids) : Filter::deny(ids);
}

double share_of(const char* function, const char* name, double given, double otherwise) {
  if (given == 0) return otherwise;
  require(given > 0 && given <= 1, "{}: {} must be above 0 and at most 1, got {}", function, name, given);
  return given;
}

std::span<const Id> ids_of(const std::int64_t* ids, std::size_t count) {
  return ids == nullptr ? std::span<const Id>() : std::span<const Id>(ids, count);
}

void write_neighbors(const Neighbors& neighbors, std::int64_t* ids, float* distances) {
  const std::size_t count = neighbors.ids.rows() * neighbors.ids.cols();
  std::copy_n(neighbors.ids.data(), count, ids);
  if (distances != nullptr) std::copy_n(neighbors.distances.data(), count, distances);
}

}  // namespace nearwise::c_api

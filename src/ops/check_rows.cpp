#include "ops/check_rows.h"

#include <cstddef>
#include <cstdint>

#include "core/check.h"
#include "core/lost_pages.h"
#include "ops/check_place.h"

namespace nearwise {
namespace {

// Bounds of the error analysis (docs/algorithms/certified-search.md), far above any use.
constexpr std::size_t max_dim = std::size_t{1} << 20;

}  // namespace

void check_rows(const char* operation, const Context& context, const RowsView& queries, const RowsView& base,
                const RowsNames& names) {
  require(queries.dim() == base.dim(), "{}: {} and {} must have the same dimension, got {} and {}", operation,
          names.queries, names.base, queries.dim(), base.dim());
  require(base.dim() >= 1 && base.dim() <= max_dim, "{}: the dimension must be 1 to {}, got {}", operation,
          max_dim, base.dim());
  for (const RowsView& rows : {queries, base}) {
    require(rows.rows() <= 1 || rows.stride_bytes() >= rows.dim() * element_size(rows.type()),
            "{}: rows must not overlap, a row has {} bytes and the next begins after {}", operation,
            rows.dim() * element_size(rows.type()), rows.stride_bytes());
  }
  check_mapped(queries);
  check_mapped(base);
  check_place(operation, context, base.place(), "base rows");
  check_place(operation, context, queries.place(), "queries");
  for (const RowsView& rows : {queries, base}) {
    const std::size_t size = element_size(rows.type());
    require(
        rows.place().kind == DeviceKind::cpu ||
            (reinterpret_cast<std::uintptr_t>(rows.data()) % size == 0 && rows.stride_bytes() % size == 0),
        "{}: rows on a device must be aligned to their elements of {} bytes", operation, size);
  }
}

}  // namespace nearwise

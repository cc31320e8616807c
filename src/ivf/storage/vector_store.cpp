#include "ivf/storage/vector_store.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/context_state.h"
#include "core/check.h"
#include "core/convert.h"
#include "core/lost_pages.h"
#include "core/progress.h"
#include "ops/finite_rows.h"
#include "ops/knn_plan.h"

namespace nearwise {

std::string_view name(VectorStorage storage) {
  switch (storage) {
    case VectorStorage::f16: return "f16";
    case VectorStorage::u8: return "u8";
    case VectorStorage::none: return "none";
    case VectorStorage::file: return "file";
    case VectorStorage::keep: break;
  }
  return "keep";
}

VectorStorage parse_vector_storage(std::string_view text) {
  for (const VectorStorage storage :
       {VectorStorage::keep, VectorStorage::f16, VectorStorage::u8, VectorStorage::none, VectorStorage::file})
    if (name(storage) == text) return storage;
  fail(ErrorCode::invalid_argument, "vectors: must be keep, f16, u8, none or file, got {}", text);
}

namespace ivf {
namespace {

constexpr float max_f16 = 65504;
constexpr double max_byte = 255;
constexpr std::size_t checked_rows = 4096;  // between two checks for cancellation

std::uint8_t byte_of(double element, double offset, double step) {
  return static_cast<std::uint8_t>(std::clamp(std::nearbyint((element - offset) / step), 0.0, max_byte));
}

}  // namespace

ElementType VectorStore::read_type(VectorStorage storage, ElementType type) {
  if (storage == VectorStorage::f16) return ElementType::f16;
  // Bytes are kept as they are.
  const bool is_byte = type == ElementType::u8 || type == ElementType::i8;
  return storage == VectorStorage::u8 && !is_byte ? ElementType::f32 : type;
}

std::size_t VectorStore::bytes(VectorStorage storage, ElementType type, std::size_t dim) {
  if (storage == VectorStorage::none) return 0;
  if (storage == VectorStorage::file) return sizeof(std::uint32_t);
  const bool scaled = storage == VectorStorage::u8;
  return dim * (scaled ? 1 : element_size(read_type(storage, type)));
}

KeptVectors VectorStore::view() const {
  if (file.mapped) check_mapped(file.mapped->rows());
  return {.bytes = bytes(),
          .type = type,
          .dim = dim,
          .offsets = offsets,
          .step = step,
          .file = file.mapped ? file.mapped->rows() : RowsView()};
}

Buffer<std::uint32_t> VectorStore::rows_in_file(const char* operation, MemoryBudget& budget,
                                                const RowsView& rows, std::span<const Id> ids,
                                                std::uint64_t next_row) const {
  const RowsView there = file.mapped->rows();
  check_mapped(there);
  const std::string where = file.path.string();
  require(rows.type() == type, "{}: the vectors of '{}' are of {}, got {}", operation, where, name(type),
          name(rows.type()));
  const std::size_t row_bytes = dim * element_size(type);
  Buffer<std::uint32_t> numbers(budget, rows.rows());
  const auto find = [&](const auto& number_of) {
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      if (row % checked_rows == 0) check_cancelled();
      const std::uint64_t number = number_of(row);
      if (number >= there.rows() || std::memcmp(rows.row(row), there.row(number), row_bytes) != 0) return row;
      numbers[row] = static_cast<std::uint32_t>(number);
    }
    return rows.rows();
  };
  const std::size_t other = find([&](std::size_t row) { return next_row + row; });
  if (other == rows.rows()) return numbers;
  if (!ids.empty() &&
      find([&](std::size_t row) { return static_cast<std::uint64_t>(ids[row]); }) == rows.rows())
    return numbers;
  fail(
      ErrorCode::invalid_argument,
      "{}: the vectors of the index are rows of '{}', which has {}: vectors must be those from row {} on, or "
      "have their row numbers as ids; vector {} is not row {}",
      operation, where, there.rows(), next_row, other, next_row + other);
}

void VectorStore::check(const char* operation, const Context& context, const RowsView& rows) const {
  if (storage == VectorStorage::f16 && rows.type() != ElementType::f16)
    check_coded_range(operation, context, rows, max_f16);
  // Widening to f32 keeps every element.
  require(storage != VectorStorage::keep || rows.type() == type || type == ElementType::f32,
          "{}: the index keeps vectors of {}, got {}", operation, name(type), name(rows.type()));
  require(storage != VectorStorage::u8 || !offsets.empty() || rows.type() == type,
          "{}: the index keeps vectors of {}, got {}", operation, name(type), name(rows.type()));
}

const std::byte* VectorStore::encode(const RowsView& rows, std::size_t row, std::byte* scratch) const {
  const std::byte* const from = rows.row(row);
  if (offsets.empty() && rows.type() == type) return from;
  visit_element_type(rows.type(), [&](auto tag) {
    for (std::size_t i = 0; i < dim; ++i) {
      const float value = element<decltype(tag)>(from, i);
      if (!offsets.empty()) {
        scratch[i] = static_cast<std::byte>(byte_of(value, offsets[i], step));
      } else if (type == ElementType::f16) {
        const Float16 half = to_float16(value);
        std::memcpy(scratch + i * sizeof(half), &half, sizeof(half));
      } else {
        std::memcpy(scratch + i * sizeof(value), &value, sizeof(value));
      }
    }
  });
  return scratch;
}

VectorStore make_vector_store(const Context& context, const RowsView& rows, VectorStorage storage,
                              const std::filesystem::path& path) {
  VectorStore store = {
      .storage = storage, .type = VectorStore::read_type(storage, rows.type()), .dim = rows.dim()};
  if (storage == VectorStorage::file) {
    require(!path.empty(), "Ivf.train: vectors in a file need its path (vector_file), got none");
    store.file = link_file(path);
    const RowsView there = store.file.mapped->rows();
    require(there.dim() == rows.dim() && there.rows() <= max_shard_rows,
            "Ivf.train: vectors of {} elements, at most {}, expected in '{}', got {} of {}", rows.dim(),
            max_shard_rows, path.string(), there.rows(), there.dim());
    store.type = there.type();
    return store;
  }
  const bool is_scaled = storage == VectorStorage::u8 && store.type == ElementType::f32;
  if (!is_scaled) return store;
  std::vector<float> highest(rows.dim(), -std::numeric_limits<float>::infinity());
  store.offsets.assign(rows.dim(), std::numeric_limits<float>::infinity());
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    if (row % checked_rows == 0) context.state().cancel.check();
    visit_element_type(rows.type(), [&](auto tag) {
      for (std::size_t i = 0; i < rows.dim(); ++i) {
        const float value = element<decltype(tag)>(rows.row(row), i);
        store.offsets[i] = std::min(store.offsets[i], value);
        highest[i] = std::max(highest[i], value);
      }
    });
  }
  double range = 0;
  for (std::size_t i = 0; i < rows.dim(); ++i)
    range = std::max(range, static_cast<double>(highest[i]) - store.offsets[i]);
  store.step = static_cast<float>(range / max_byte);
  // All vectors are equal, or differ by less than a step can be.
  if (!(store.step > 0)) store.step = 1;
  return store;
}

}  // namespace ivf
}  // namespace nearwise

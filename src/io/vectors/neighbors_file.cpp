// read_neighbors and write_neighbors: ground truths and results in the formats of others.
#include "io/vectors/neighbors_file.h"

#include <array>
#include <limits>
#include <vector>

#include "core/cancellable.h"
#include "core/checked.h"
#include "io/files/little_endian.h"
#include "io/files/mapped_file.h"
#include "io/vectors/row_output.h"
#include "nearwise/storage.h"
#include "nearwise/vector_file.h"

namespace nearwise {
namespace {

// Rows of i32 or i64, at any alignment.
Matrix<Id> widen(const VectorLayout& layout, std::span<const std::byte> bytes, const std::string& source) {
  Matrix<Id> ids(layout.rows, layout.dim);
  const std::size_t size = stored_size(layout.type);
  check_cancelled();
  CancellableSteps steps;
  for (std::size_t row = 0; row < layout.rows; ++row) {
    steps.add(1 + layout.dim);
    const std::byte* from = bytes.data() + layout.data_offset + row * layout.stride_bytes;
    for (std::size_t i = 0; i < layout.dim; ++i, from += size) {
      const Id id = layout.type == StoredType::i32 ? Id{load<std::int32_t>(from)} : load<std::int64_t>(from);
      if (id < no_id)
        fail(ErrorCode::corrupt, "{}: row {}: ids of {} or larger expected, found {}", source, row, no_id,
             id);
      ids(row, i) = id;
    }
  }
  return ids;
}

// u32 rows, u32 k, ids [rows, k] i32, distances [rows, k] f32
Neighbors parse_ground_truth(std::span<const std::byte> bytes, const std::string& source) {
  if (bytes.size() < 8)
    fail(ErrorCode::corrupt, "{}: a header of 8 bytes expected, found {}", source, bytes.size());
  VectorLayout layout{.format = VectorFormat::ground_truth, .type = StoredType::i32};
  layout.rows = load<std::uint32_t>(bytes.data());
  layout.dim = load<std::uint32_t>(bytes.data() + 4);
  layout.data_offset = 8;
  layout.stride_bytes = layout.dim * stored_size(layout.type);
  // Both below 2^32: the product of the two fits, times 8 it may not.
  const std::uint64_t content = checked_multiply<std::uint64_t>(std::uint64_t{layout.rows} * layout.dim,
                                                                sizeof(std::int32_t) + sizeof(float),
                                                                source.c_str(), ErrorCode::corrupt);
  const std::uint64_t expected = checked_add<std::uint64_t>(content, 8, source.c_str(), ErrorCode::corrupt);
  if (expected != bytes.size())
    fail(ErrorCode::corrupt, "{}: a ground truth of {} rows, {} neighbours each, needs {} bytes, found {}",
         source, layout.rows, layout.dim, expected, bytes.size());
  if (layout.rows != 0 && layout.dim == 0)
    fail(ErrorCode::corrupt, "{}: at least one neighbour per row expected, found 0", source);

  Neighbors neighbors{widen(layout, bytes, source), Matrix<float>(layout.rows, layout.dim)};
  const std::byte* const distances = bytes.data() + 8 + layout.rows * layout.stride_bytes;
  CancellableSteps steps;
  for (std::size_t row = 0; row < layout.rows; ++row) {
    steps.add(1 + layout.dim);
    std::memcpy(neighbors.distances.row(row).data(), distances + row * layout.stride_bytes,
                layout.stride_bytes);
  }
  return neighbors;
}

std::int32_t narrow(Id id, const std::string& path, std::size_t row) {
  const bool fits = id >= no_id && id <= std::numeric_limits<std::int32_t>::max();
  require(fits, "write {}: row {}: ids of {} to 2^31 - 1 expected (this format has 32 bits), got {}", path,
          row, no_id, id);
  return static_cast<std::int32_t>(id);
}

// Calls write(row) with each row of ids in 32 bits.
template <typename Write>
void for_each_narrow_row(const Matrix<Id>& ids, const std::string& path, const Write& write) {
  std::vector<std::int32_t> narrowed(ids.cols());
  for (std::size_t row = 0; row < ids.rows(); ++row) {
    for (std::size_t i = 0; i < ids.cols(); ++i) narrowed[i] = narrow(ids(row, i), path, row);
    write(std::as_bytes(std::span(narrowed)));
  }
}

void write_ground_truth(const std::filesystem::path& path, const Neighbors& neighbors) {
  const Matrix<Id>& ids = neighbors.ids;
  const Matrix<float>& distances = neighbors.distances;
  require(distances.rows() == ids.rows() && distances.cols() == ids.cols(),
          "write {}: ids and distances of one shape expected, got [{}, {}] and [{}, {}]", path.native(),
          ids.rows(), ids.cols(), distances.rows(), distances.cols());
  constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
  require(ids.rows() <= most && ids.cols() <= most, "write {}: at most 2^32 - 1 rows expected, got {}",
          path.native(), ids.rows());
  AtomicFile file(path);
  const std::array header = {static_cast<std::uint32_t>(ids.rows()), static_cast<std::uint32_t>(ids.cols())};
  file.write(std::as_bytes(std::span(header)));
  for_each_narrow_row(ids, path.native(), [&](std::span<const std::byte> row) { file.write(row); });
  file.write(std::as_bytes(std::span(distances.data(), distances.rows() * distances.cols())));
  file.commit();
}

}  // namespace

Neighbors parse_neighbors(const Suffix& suffix, std::span<const std::byte> bytes, const std::string& source) {
  if (suffix.format == VectorFormat::ground_truth) return parse_ground_truth(bytes, source);
  const VectorLayout layout = check_vectors(suffix, bytes, source);
  require(is_id(layout.type), "{}: ids expected (i32 or i64), found elements {}", source, name(layout.type));
  return {widen(layout, bytes, source), {}};
}

Neighbors read_neighbors(const std::filesystem::path& path) {
  const MappedFile file(path);
  const Suffix format = read_mapped([&] { return format_of(path, file.bytes(), "open"); });
  if (format.format == VectorFormat::container) return load_neighbors(path).neighbors;
  return read_mapped([&] { return parse_neighbors(format, file.bytes(), "open " + path.native()); });
}

void write_neighbors(const std::filesystem::path& path, const Neighbors& neighbors) {
  const Suffix& suffix = suffix_of(path, "write");
  require(suffix.format != VectorFormat::container,
          "write {}: .nw also keeps metric and provenance: call save() of nearwise/storage.h", path.native());
  require(neighbors.ids.cols() >= 1, "write {}: at least one neighbour per row expected, got 0",
          path.native());
  if (suffix.format == VectorFormat::ground_truth) return write_ground_truth(path, neighbors);

  const Matrix<Id>& ids = neighbors.ids;
  const bool wide = suffix.format == VectorFormat::npy;
  RowOutput output(path, wide ? StoredType::i64 : StoredType::i32, ids.cols());
  if (wide) {
    output.append_packed(std::as_bytes(std::span(ids.data(), ids.rows() * ids.cols())), ids.rows());
  } else {
    for_each_narrow_row(ids, path.native(), [&](std::span<const std::byte> row) { output.append(row); });
  }
  output.commit();
}

}  // namespace nearwise

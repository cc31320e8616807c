// Merges index files list by list, from mapped inputs to the output, without loading their vectors.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "backend/context_state.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/memory.h"
#include "core/progress.h"
#include "io/container/container_writer.h"
#include "io/container/metadata.h"
#include "ivf/ivf_container.h"
#include "ivf/storage/linked_file.h"
#include "nearwise/ivf.h"
#include "ops/knn_plan.h"
#include "ops/memory_limit.h"

namespace nearwise {
namespace {

using Json = nlohmann::json;

// The sections of the quantizers; a flat index has no codewords.
constexpr std::array shared_sections = {"centroids", "codewords"};

// One of the inputs.
class Part {
 public:
  explicit Part(const std::filesystem::path& path) : reader_(ContainerReader::open(path)) {
    ivf::expect_ivf(reader_);
    metadata_ = reader_.metadata();
    sizes_ = reader_.section("list_sizes").rows<std::uint64_t>();
    std::uint64_t rows = 0;
    for (std::size_t list = 0; list < sizes_.rows(); ++list)
      rows = checked_add(rows, sizes_(list, 0), "list_sizes", ErrorCode::corrupt);
    const container::Section& ids = section("ids").info();
    const container::Section& codes = section("codes").info();
    if (sizes_.cols() != 1 || rows != ids.rows || rows != codes.rows)
      fail(ErrorCode::corrupt, "{}: list_sizes: its shape does not fit the other sections", source());
    if (ids.element != container::ElementOf<Id>::value || ids.columns != 1 ||
        codes.element != container::Element::u8)
      fail(ErrorCode::corrupt, "{}: ids of i64 and codes of u8 expected", source());
    if (has("vectors") && (section("vectors").info().rows != rows ||
                           section("vectors").info().element != container::Element::u8))
      fail(ErrorCode::corrupt, "{}: vectors: {} of u8 expected", source(), rows);
    next_id_ = read_number(metadata_, "next_id", source(), std::numeric_limits<Id>::max());
    static_cast<void>(read_provenance(metadata_, source()));
  }

  const std::string& source() const { return reader_.source(); }
  const Json& metadata() const { return metadata_; }
  std::uint64_t next_id() const { return next_id_; }
  std::size_t rows() const { return section("ids").info().rows; }
  std::size_t lists() const { return sizes_.rows(); }
  std::uint64_t size(std::size_t list) const { return sizes_(list, 0); }
  SectionView section(std::string_view name) const { return reader_.section(name); }
  bool has(std::string_view name) const { return reader_.find(name) != nullptr; }

  // How vectors are kept, without what differs between parts: where a linked file lies, and its next row.
  Json kept_vectors() const {
    Json kept = metadata_.value("vectors", Json::object());
    if (!kept.is_object()) fail(ErrorCode::corrupt, "{}: metadata: an object 'vectors' expected", source());
    kept.erase("path");
    kept.erase("next_row");
    return kept;
  }
  bool has_linked_file() const {
    return kept_vectors().value("storage", Json()) == name(VectorStorage::file);
  }
  std::uint64_t next_file_row() const {
    return has_linked_file() ? read_number(metadata_.at("vectors"), "next_row", source(), max_shard_rows) : 0;
  }

  bool has_same_quantizers(const Part& other) const {
    for (const char* const key :
         {"metric", "dim", "encoding", "element_type", "parts", "bits", "encode_iterations"})
      if (metadata_.value(key, Json()) != other.metadata_.value(key, Json())) return false;
    if (kept_vectors() != other.kept_vectors()) return false;
    const auto same = [&](const char* name) {
      return has(name) == other.has(name) &&
             (!has(name) || std::ranges::equal(section(name).bytes(), other.section(name).bytes()));
    };
    return lists() == other.lists() && std::ranges::all_of(shared_sections, same) &&
           section("codes").info().columns == other.section("codes").info().columns &&
           has("vectors") == other.has("vectors") &&
           (!has("vectors") || section("vectors").info().columns == other.section("vectors").info().columns);
  }

 private:
  ContainerReader reader_;
  Json metadata_;
  MatrixView<const std::uint64_t> sizes_;
  std::uint64_t next_id_ = 0;
};

// Progress in vectors: the bytes of ids and codes written so far, divided by those of one vector.
class RowsWritten {
 public:
  RowsWritten(ProgressMeter& progress, std::uint64_t row_bytes)
      : progress_(progress), row_bytes_(row_bytes) {}

  void add(std::uint64_t bytes) {
    const std::uint64_t before = bytes_ / row_bytes_;
    bytes_ += bytes;
    progress_.add(bytes_ / row_bytes_ - before);
  }

 private:
  ProgressMeter& progress_;
  const std::uint64_t row_bytes_;
  std::uint64_t bytes_ = 0;
};

std::uint64_t row_bytes_of(const SectionView& section) {
  return section.info().columns * section.info().element_bytes;
}

// For each list, the entries of all inputs in turn.
void append_lists(const Context& context, ContainerWriter& writer, const std::vector<Part>& parts,
                  const char* name, RowsWritten& written) {
  std::vector<std::uint64_t> begins(parts.size(), 0);
  for (std::size_t list = 0; list < parts.front().lists(); ++list) {
    context.state().cancel.check();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const SectionView section = parts[i].section(name);
      const std::uint64_t bytes = parts[i].size(list) * row_bytes_of(section);
      writer.append(section.bytes(begins[i], bytes));
      begins[i] += bytes;
      written.add(bytes);
    }
  }
}

// Of different files; one file's ids differ already.
void check_ids_differ(const Context& context, const std::vector<Part>& parts) {
  if (parts.size() < 2) return;
  std::size_t count = 0;
  for (const Part& part : parts) count += part.rows();
  check_memory("merge_ivf_files", context, buffer_bytes(count, sizeof(Id)));
  Buffer<Id> ids(*context.state().budget, count);
  std::size_t size = 0;
  for (const Part& part : parts) {
    const std::span<const std::byte> bytes = part.section("ids").bytes();
    std::memcpy(ids.data() + size, bytes.data(), bytes.size());
    size += part.rows();
  }
  std::ranges::sort(ids.span());
  const auto twice = std::ranges::adjacent_find(ids.span());
  require(twice == ids.span().end(), "merge_ivf_files: the ids of all files must differ, got {} twice",
          twice == ids.span().end() ? 0 : *twice);
}

}  // namespace

void merge_ivf_files(const Context& context, std::span<const std::filesystem::path> files,
                     const std::filesystem::path& output,
                     const std::map<std::string, std::string>& provenance) {
  require(!files.empty(), "merge_ivf_files: there must be at least 1 file, got 0");
  const LostPagesScope lost_pages;
  std::vector<Part> parts;
  std::uint64_t rows = 0;
  std::uint64_t next_id = 0;
  std::uint64_t next_file_row = 0;
  for (const std::filesystem::path& file : files) {
    parts.emplace_back(file);
    require(parts.back().has_same_quantizers(parts.front()),
            "merge_ivf_files: {}: the quantizers must be those of {}, from one training",
            parts.back().source(), parts.front().source());
    rows += parts.back().rows();
    next_id = std::max(next_id, parts.back().next_id());
    next_file_row = std::max(next_file_row, parts.back().next_file_row());
  }
  require(rows <= max_shard_rows, "merge_ivf_files: an index holds at most {} vectors, got {}",
          max_shard_rows, rows);
  std::vector<std::uint64_t> sizes(parts.front().lists());
  for (const Part& part : parts)
    for (std::size_t list = 0; list < sizes.size(); ++list) sizes[list] += part.size(list);

  const Context::State& state = context.state();
  state.cancel.check();
  check_ids_differ(context, parts);
  ProgressMeter progress(state.options.progress, state.clock, "merge", rows);
  const bool has_vectors = parts.front().has("vectors");
  RowsWritten written(progress, row_bytes_of(parts.front().section("ids")) +
                                    row_bytes_of(parts.front().section("codes")) +
                                    (has_vectors ? row_bytes_of(parts.front().section("vectors")) : 0));
  ContainerWriter writer(output, std::string(ivf::container_kind));
  Json metadata = parts.front().metadata();
  if (has_vectors || metadata.value("calibration", Json()).contains("other_k")) writer.set_minor_version(1);
  metadata["next_id"] = next_id;
  if (parts.front().has_linked_file()) {
    Json& kept = metadata["vectors"];
    writer.set_minor_version(3);
    const std::filesystem::path linked =
        ivf::linked_path(read_text(kept, "path", parts.front().source()), files.front());
    kept["path"] = ivf::recorded_path(linked, output);
    kept["next_row"] = next_file_row;
  }
  for (const auto& [key, text] : provenance) metadata["provenance"][key] = text;
  writer.write_metadata(metadata);
  for (const char* const name : shared_sections)
    if (parts.front().has(name)) writer.write_section(name, parts.front().section(name).rows<float>());
  writer.write_section("list_sizes", MatrixView<const std::uint64_t>(sizes.data(), sizes.size(), 1));
  writer.begin_section("ids", container::ElementOf<Id>::value);
  append_lists(context, writer, parts, "ids", written);
  writer.begin_section("codes", container::Element::u8,
                       {.columns = parts.front().section("codes").info().columns});
  append_lists(context, writer, parts, "codes", written);
  if (has_vectors) {
    writer.begin_section(
        "vectors", container::Element::u8,
        {.columns = parts.front().section("vectors").info().columns, .presence = Presence::optional});
    append_lists(context, writer, parts, "vectors", written);
  }
  writer.commit();
  progress.finish();
}

}  // namespace nearwise

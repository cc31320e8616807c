// Files of inverted files (docs/format.md, kind "ivf").
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "backend/context_state.h"
#include "backend/dispatch.h"
#include "core/checked.h"
#include "io/container/container_writer.h"
#include "io/container/metadata.h"
#include "ivf/ivf_container.h"
#include "ivf/ivf_state.h"
#include "ops/exact_search.h"
#include "ops/finite_rows.h"

namespace nearwise {
namespace {

using Json = nlohmann::json;

constexpr std::size_t checked_rows = 1 << 16;  // between two checks for cancellation

Json describe(const Calibration& calibration) {
  Json json = {{"probes", calibration.probes},
               {"recall", encode(calibration.recall)},
               {"recall_without_rerank", encode(calibration.recall_without_rerank)},
               {"target_recall", calibration.target_recall},
               {"neighbors", calibration.neighbors},
               {"rows", calibration.rows}};
  if (calibration.candidates) json["candidates"] = *calibration.candidates;
  for (const RecallAtK& other : calibration.other_k)
    json["other_k"].push_back({{"k", other.k},
                               {"probes", other.probes},
                               {"recall", encode(other.recall)},
                               {"recall_without_rerank", encode(other.recall_without_rerank)}});
  return json;
}

// Ascending; `neighbors` is not among them.
std::vector<RecallAtK> read_other_k(const Json& json, std::size_t neighbors, const std::string& source) {
  if (!json.is_array()) throw std::out_of_range("other_k: an array expected");
  std::vector<RecallAtK> others;
  for (const Json& one : json) {
    others.push_back(
        {.k = read_number(one, "k", source, max_shard_rows),
         .probes = read_number(one, "probes", source),
         .recall = decode_recall(one.at("recall"), max_shard_rows),
         .recall_without_rerank = decode_recall(one.at("recall_without_rerank"), max_shard_rows)});
    const std::size_t k = others.back().k;
    if (k == 0 || k == neighbors || (others.size() > 1 && k <= others[others.size() - 2].k))
      throw std::out_of_range("other_k: ascending k expected, which differ from neighbors");
  }
  return others;
}

std::optional<Calibration> read_calibration(const Json& metadata, const std::string& source) {
  const auto found = metadata.find("calibration");
  if (found == metadata.end()) return {};
  if (!found->is_object()) fail(ErrorCode::corrupt, "{}: metadata: an object 'calibration' expected", source);
  Calibration calibration = {.probes = read_number(*found, "probes", source),
                             .neighbors = read_number(*found, "neighbors", source, max_shard_rows),
                             .rows = read_number(*found, "rows", source, max_shard_rows)};
  if (found->contains("candidates"))
    calibration.candidates = read_number(*found, "candidates", source, max_shard_rows);
  try {
    calibration.recall = decode_recall(found->at("recall"), max_shard_rows);
    calibration.recall_without_rerank = decode_recall(found->at("recall_without_rerank"), max_shard_rows);
    calibration.target_recall = found->at("target_recall").get<double>();
    if (!(calibration.target_recall > 0 && calibration.target_recall <= 1))
      throw std::out_of_range("target_recall above 0 and at most 1 expected");
    if (calibration.neighbors == 0) throw std::out_of_range("neighbors of at least 1 expected");
    if (found->contains("other_k"))
      calibration.other_k = read_other_k(found->at("other_k"), calibration.neighbors, source);
  } catch (const std::exception& error) {
    fail(ErrorCode::corrupt, "{}: metadata: calibration: {}", source, error.what());
  }
  return calibration;
}

Json describe(const ivf::VectorStore& store, std::uint64_t next_file_row,
              const std::filesystem::path& index_path) {
  Json json = {{"storage", name(store.storage)}, {"element_type", name(store.type)}};
  if (store.storage == VectorStorage::file)
    json.update({{"path", ivf::recorded_path(store.file.path, index_path)},
                 {"bytes", store.file.bytes},
                 {"checksum", store.file.checksum},
                 {"next_row", next_file_row}});
  if (!store.offsets.empty()) {
    json["offsets"] = store.offsets;
    json["step"] = store.step;
  }
  return json;
}

// Without this key, as in format 1.0, the index keeps no vectors.
ivf::VectorStore read_vector_store(const Json& metadata, std::size_t dim,
                                   const std::filesystem::path& index_path, const std::string& source) {
  const auto found = metadata.find("vectors");
  if (found == metadata.end()) return {.dim = dim};
  ivf::VectorStore store = {.dim = dim};
  try {
    store.storage = parse_vector_storage(found->at("storage").get<std::string>());
    if (store.storage == VectorStorage::none) throw std::out_of_range("a storage expected");
    store.type = parse_element_type(found->at("element_type").get<std::string>());
    const bool is_scaled = store.storage == VectorStorage::u8 && store.type == ElementType::f32;
    if (store.type != ivf::VectorStore::read_type(store.storage, store.type))
      throw std::out_of_range("element_type does not fit the storage");
    if (store.storage == VectorStorage::file)
      store.file = {.path = ivf::linked_path(read_text(*found, "path", source), index_path),
                    .bytes = read_number(*found, "bytes", source, most_metadata_number),
                    .checksum = read_number(*found, "checksum", source)};
    if (is_scaled) {
      store.offsets = found->at("offsets").get<std::vector<float>>();
      store.step = found->at("step").get<float>();
      if (store.offsets.size() != dim || !std::ranges::all_of(store.offsets, [](float offset) {
            return std::abs(offset) <= quantize::max_centroid_value;
          }))
        throw std::out_of_range("an offset within the range of vectors expected for every dimension");
      // 255 steps above an offset must be finite in f32.
      if (!(store.step > 0 && store.step <= quantize::max_centroid_value / 255))
        throw std::out_of_range("a step above 0, within the range of vectors, expected");
    }
  } catch (const std::exception& error) {
    fail(ErrorCode::corrupt, "{}: metadata: vectors: {}", source, error.what());
  }
  return store;
}

// The metadata that is not the codec's.
struct Header {
  Metric metric;
  std::size_t dim;
  std::size_t probes;
  std::size_t candidates;
  std::optional<Calibration> calibration;
  std::map<std::string, std::string> provenance;
  Id next_id;
};

Metric read_metric(const Json& metadata, const std::string& source) {
  const std::string text = read_text(metadata, "metric", source);
  try {
    return parse_metric(text);
  } catch (const Error& error) {
    fail(ErrorCode::corrupt, "{}: metadata: {}", source, error.what());
  }
}

Header read_header(const Json& metadata, const std::string& source) {
  Header header = {.metric = read_metric(metadata, source),
                   .dim = read_number(metadata, "dim", source),
                   .probes = read_number(metadata, "probes", source),
                   .candidates = read_number(metadata, "candidates", source),
                   .calibration = read_calibration(metadata, source),
                   .provenance = read_provenance(metadata, source),
                   .next_id = static_cast<Id>(read_number(metadata, "next_id", source))};
  if (header.dim == 0 || header.next_id < 0)
    fail(ErrorCode::corrupt, "{}: metadata: dim or next_id is out of range", source);
  if (header.candidates < 1 || header.candidates > max_shard_rows)
    fail(ErrorCode::corrupt, "{}: metadata: candidates of 1 to {} expected, {} found", source, max_shard_rows,
         header.candidates);
  return header;
}

void check_probes(const Header& header, std::size_t lists, const std::string& source) {
  const auto check = [&](std::size_t probes) {
    if (probes < 1 || probes > lists)
      fail(ErrorCode::corrupt, "{}: metadata: probes of 1 to {} expected, {} found", source, lists, probes);
  };
  check(header.probes);
  if (!header.calibration) return;
  check(header.calibration->probes);
  for (const RecallAtK& other : header.calibration->other_k) check(other.probes);
}

void check_centroids(const MatrixView<const float>& centroids, bool flat, const std::string& source) {
  const std::span<const float> all(centroids.data(), centroids.rows() * centroids.cols());
  const float limit = flat ? std::numeric_limits<float>::max() : quantize::max_centroid_value;
  const std::size_t bad = quantize::first_beyond(all, limit);
  if (bad != all.size())
    fail(ErrorCode::corrupt, "{}: centroids: magnitudes of at most {} expected, {} found at element {}",
         source, limit, all[bad], bad);
}

// Vectors that are stored as they are must be finite.
void check_stored_rows(const char* section, const Context& context, const RowsView& rows,
                       const std::string& source) {
  try {
    check_finite(section, context, rows);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    fail(ErrorCode::corrupt, "{}: {}", source, error.what());
  }
}

void check_shape(bool right, const char* section, const std::string& source) {
  if (!right) fail(ErrorCode::corrupt, "{}: {}: its shape does not fit the other sections", source, section);
}

}  // namespace

void save(const Ivf& index, const std::filesystem::path& path) {
  const Ivf::State& state = *index.state_;
  const index::IndexLock::Reading reading(state.lock);
  ContainerWriter writer(path, std::string(ivf::container_kind));
  const bool has_other_k = state.calibration && !state.calibration->other_k.empty();
  if (index.vectors() == VectorStorage::file)
    writer.set_minor_version(3);
  else if (index.vector_bytes() != 0 || has_other_k)
    writer.set_minor_version(1);
  Json metadata = {{"metric", name(state.metric)},
                   {"dim", index.dim()},
                   {"probes", state.probes},
                   {"candidates", state.candidates},
                   {"next_id", static_cast<std::uint64_t>(state.next_id)},
                   {"provenance", state.provenance}};
  if (index.vector_bytes() != 0) metadata["vectors"] = describe(state.vectors, state.next_file_row, path);
  metadata.update(state.codec->settings());
  if (state.calibration) metadata["calibration"] = describe(*state.calibration);
  writer.write_metadata(metadata);
  writer.write_section("centroids", state.centroids.view());
  if (!state.is_flat()) writer.write_section("codewords", state.codec->codewords());
  std::vector<std::uint64_t> sizes(index.lists());
  for (std::size_t list = 0; list < sizes.size(); ++list) sizes[list] = state.rows.view(list).rows;
  writer.write_section("list_sizes", MatrixView<const std::uint64_t>(sizes.data(), sizes.size(), 1));
  writer.begin_section("ids", container::ElementOf<Id>::value);
  for (std::size_t list = 0; list < sizes.size(); ++list)
    writer.append(std::as_bytes(std::span(state.rows.view(list).ids, sizes[list])));
  writer.begin_section("codes", container::Element::u8, {.columns = index.code_bytes()});
  for (std::size_t list = 0; list < sizes.size(); ++list)
    writer.append({state.rows.view(list).codes, sizes[list] * index.code_bytes()});
  if (index.vector_bytes() != 0) {
    writer.begin_section("vectors", container::Element::u8,
                         {.columns = index.vector_bytes(), .presence = Presence::optional});
    for (std::size_t list = 0; list < sizes.size(); ++list)
      writer.append({state.rows.view(list).vectors, sizes[list] * index.vector_bytes()});
  }
  writer.commit();
}

Ivf load_ivf(const Context& context, const std::filesystem::path& path) {
  const CancellationScope cancellation(context);
  const LostPagesScope lost_pages;
  const auto reader = std::make_shared<const ContainerReader>(ContainerReader::open(path));
  const std::string& source = reader->source();
  ivf::expect_ivf(*reader);
  reader->verify();
  const Json metadata = reader->metadata();
  const Header header = read_header(metadata, source);
  const MatrixView<const float> centroids = reader->section("centroids").rows<float>();
  const MatrixView<const std::uint64_t> sizes = reader->section("list_sizes").rows<std::uint64_t>();
  const MatrixView<const Id> ids = reader->section("ids").rows<Id>();
  const MatrixView<const std::uint8_t> codes = reader->section("codes").rows<std::uint8_t>();
  check_shape(centroids.rows() >= 1 && centroids.cols() == header.dim, "centroids", source);
  check_shape(sizes.rows() == centroids.rows() && sizes.cols() == 1, "list_sizes", source);
  check_shape(ids.cols() == 1 && ids.rows() == codes.rows() && ids.rows() <= max_shard_rows, "ids", source);
  std::uint64_t rows = 0;
  for (std::size_t list = 0; list < sizes.rows(); ++list)
    rows = checked_add(rows, sizes(list, 0), "list_sizes", ErrorCode::corrupt);
  check_shape(rows == ids.rows(), "list_sizes", source);
  for (std::size_t row = 0; row < ids.rows(); ++row) {
    if (row % checked_rows == 0) check_cancelled();
    if (ids(row, 0) < 0 || ids(row, 0) >= header.next_id)
      fail(ErrorCode::corrupt, "{}: ids, row {}: 0 to {} expected, {} found", source, row, header.next_id - 1,
           ids(row, 0));
  }
  check_probes(header, centroids.rows(), source);

  auto codec = quantize::read_codec(*reader, metadata, header.dim);
  const ListCodec view = codec->view();
  ivf::VectorStore vectors = view.is_flat() ? ivf::VectorStore{.dim = header.dim}
                                            : read_vector_store(metadata, header.dim, path, source);
  const std::size_t vector_bytes = vectors.bytes();
  const std::byte* kept = nullptr;
  std::uint64_t next_file_row = 0;
  if (vector_bytes != 0) {
    const MatrixView<const std::uint8_t> all = reader->section("vectors").rows<std::uint8_t>();
    check_shape(all.rows() == ids.rows() && all.cols() == vector_bytes, "vectors", source);
    kept = reinterpret_cast<const std::byte*>(all.data());
    if (vectors.storage == VectorStorage::file) {
      vectors.file = ivf::open_linked_file(vectors.file, vectors.type, header.dim, path, source);
      const std::size_t rows_there = vectors.file.mapped->rows().rows();
      const std::uint64_t least = ivf::check_file_rows(kept, all.rows(), rows_there, source);
      next_file_row = read_number(metadata.at("vectors"), "next_row", source);
      if (next_file_row < least || next_file_row > rows_there)
        fail(ErrorCode::corrupt, "{}: metadata: next_row of {} to {} expected, {} found", source, least,
             rows_there, next_file_row);
    } else if (vectors.offsets.empty())
      check_stored_rows("vectors", context, {kept, vectors.type, all.rows(), header.dim, vector_bytes},
                        source);
  }
  check_centroids(centroids, view.is_flat(), source);
  check_shape(codes.cols() == view.code_bytes, "codes", source);
  if (view.is_flat())
    check_stored_rows("codes", context, {codes.data(), view.type, codes.rows(), header.dim, view.code_bytes},
                      source);

  const std::shared_ptr<MemoryBudget> budget = context.state().budget;
  const auto stream = open_stream(context);
  std::unique_ptr<Ivf::State> state(
      new Ivf::State{.metric = header.metric,
                     .centroids = copy_of(centroids),
                     .codec = std::move(codec),
                     .centre = centre_of(*stream, centroids, header.metric),
                     .budget = budget,
                     .file = reader,
                     .vectors = std::move(vectors),
                     .probes = header.probes,
                     .candidates = header.candidates,
                     .calibration = header.calibration,
                     .provenance = header.provenance,
                     .next_id = header.next_id,
                     .next_file_row = next_file_row,
                     .rows = ivf::InvertedLists(budget, centroids.rows(), view.code_bytes, vector_bytes)});
  std::size_t first = 0;
  for (std::size_t list = 0; list < sizes.rows(); ++list) {
    const std::size_t count = sizes(list, 0);
    state->rows.borrow(
        list, {reinterpret_cast<const std::byte*>(codes.data()) + first * view.code_bytes, ids.data() + first,
               count, kept == nullptr ? nullptr : kept + first * vector_bytes});
    first += count;
  }
  check_lost_pages();
  return Ivf(std::move(state));
}

}  // namespace nearwise

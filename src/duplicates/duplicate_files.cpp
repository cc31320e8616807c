#include "duplicates/duplicate_files.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/cancellable.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/distance.h"
#include "core/lost_pages.h"
#include "core/progress.h"
#include "io/container/container_reader.h"
#include "io/container/metadata.h"

namespace nearwise {
namespace duplicates {
namespace {

using Json = nlohmann::json;

constexpr std::size_t rows_per_check = 4096;  // of cancellation

// Appends values to a section of one column in pieces.
template <typename T>
class Column {
 public:
  Column(ContainerWriter& writer, std::string_view name) : writer_(writer) {
    writer.begin_section(name, container::ElementOf<T>::value);
    values_.reserve(piece);
  }

  void add(T value) {
    values_.push_back(value);
    if (values_.size() == piece) flush();
  }
  void finish() { flush(); }

 private:
  static constexpr std::size_t piece = std::size_t{1} << 15;

  void flush() {
    check_cancelled();
    writer_.append(std::as_bytes(std::span(values_)));
    values_.clear();
  }

  ContainerWriter& writer_;
  std::vector<T> values_;
};

// Values of one column, row by row.
template <typename T>
void write_column(ContainerWriter& writer, std::string_view name, std::size_t rows,
                  const std::function<T(std::size_t)>& value) {
  Column<T> column(writer, name);
  for (std::size_t row = 0; row < rows; ++row) column.add(value(row));
  column.finish();
}

template <typename T>
std::vector<T> read_column(const ContainerReader& reader, const char* name) {
  const MatrixView<const T> column = reader.section(name).rows<T>();
  if (column.cols() != 1) fail(ErrorCode::corrupt, "{}: {}: one column expected", reader.source(), name);
  std::vector<T> values = copied_vector(std::span(column.data(), column.rows()));
  check_lost_pages();
  return values;
}

bool is_within(Metric metric, float distance, float threshold) {
  return sort_key(metric, distance) <= sort_key(metric, threshold);  // false for NaN
}

// The rules for values, the same when saving and when loading. `code` says whose fault it is.
void check_pairs(const SavedPairs& saved, const std::string& source, ErrorCode code) {
  const auto& [offsets, ids, distances] = saved.pairs;
  if (!std::isfinite(saved.threshold)) fail(code, "{}: a finite threshold expected", source);
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != ids.size() ||
      ids.size() != distances.size())
    fail(code, "{}: offsets from 0 to the number of ids and distances expected", source);
  const std::size_t rows = offsets.size() - 1;
  for (std::size_t row = 0; row < rows; ++row) {
    if (row % rows_per_check == 0) check_cancelled();
    if (offsets[row + 1] < offsets[row] || offsets[row + 1] > ids.size())
      fail(code, "{}: offsets: ascending ones expected, row {} ends at {}", source, row, offsets[row + 1]);
    auto previous = static_cast<Id>(row);
    for (std::size_t i = offsets[row]; i < offsets[row + 1]; ++i) {
      if (ids[i] <= previous || ids[i] >= static_cast<Id>(rows))
        fail(code, "{}: ids: rows after row {} in ascending order expected, below {}, {} found", source, row,
             rows, ids[i]);
      if (!is_within(saved.metric, distances[i], saved.threshold))
        fail(code, "{}: distances: within the threshold {} expected, rows {} and {} have {}", source,
             saved.threshold, row, ids[i], distances[i]);
      previous = ids[i];
    }
  }
}

// The group and the remover of a row fit those of the others.
void check_row(const SavedDeduplication& saved, std::size_t row, const std::string& source, ErrorCode code) {
  const Deduplication& of = saved.deduplication;
  const auto rows = static_cast<Id>(of.groups.size());
  const Id group = of.groups[row];
  const Id by = of.removed_by[row];
  const auto is_row = [&](Id id) { return id >= 0 && id < rows; };
  if (!is_row(group) || of.removed_by[static_cast<std::size_t>(group)] != no_id)
    fail(code, "{}: groups, row {}: a row that is kept expected, {} found", source, row, group);
  if (by == no_id) {
    if (group != static_cast<Id>(row))
      fail(code, "{}: groups, row {}: the row itself expected, which is kept, {} found", source, row, group);
    if (of.distances[row] != padding_distance(saved.metric))
      fail(code, "{}: distances, row {}: {} expected, which is kept, {} found", source, row,
           padding_distance(saved.metric), of.distances[row]);
    return;
  }
  const bool is_star = saved.grouping == DuplicateGrouping::star;
  if (!is_row(by) || by == static_cast<Id>(row) || of.groups[static_cast<std::size_t>(by)] != group ||
      (is_star && by != group))
    fail(code, "{}: removed_by, row {}: another row of its group expected, {} found", source, row, by);
  if (!is_within(saved.metric, of.distances[row], saved.threshold))
    fail(code, "{}: distances, row {}: within the threshold {} expected, {} found", source, row,
         saved.threshold, of.distances[row]);
}

void check_deduplication(const SavedDeduplication& saved, const std::string& source, ErrorCode code) {
  const Deduplication& of = saved.deduplication;
  const std::size_t rows = of.groups.size();
  if (!std::isfinite(saved.threshold)) fail(code, "{}: a finite threshold expected", source);
  const std::uint64_t most_pairs = bounded_product<std::uint64_t>(rows, rows, most_metadata_number);
  if (of.pairs > most_pairs)
    fail(code, "{}: pairs: at most {} of {} rows expected, {} found", source, most_pairs, rows, of.pairs);
  if (of.removed_by.size() != rows || of.distances.size() != rows)
    fail(code, "{}: as many groups as removed_by and distances expected, {}, {} and {} found", source, rows,
         of.removed_by.size(), of.distances.size());
  std::size_t kept = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    if (row % rows_per_check == 0) check_cancelled();
    check_row(saved, row, source, code);
    if (of.removed_by[row] != no_id) continue;
    if (kept == of.kept.size() || of.kept[kept] != static_cast<Id>(row))
      fail(code, "{}: kept: the rows that no row has removed expected, {} is missing", source, row);
    ++kept;
  }
  if (kept != of.kept.size())
    fail(code, "{}: kept: {} rows expected, {} found", source, kept, of.kept.size());
}

float read_threshold(const Json& metadata, const std::string& source) {
  const auto found = metadata.find("threshold");
  if (found == metadata.end() || !found->is_number())
    fail(ErrorCode::corrupt, "{}: metadata: a number 'threshold' expected", source);
  return found->get<float>();
}

Metric read_metric(const Json& metadata, const std::string& source) {
  try {
    return parse_metric(read_text(metadata, "metric", source));
  } catch (const Error& error) {
    fail(ErrorCode::corrupt, "{}: metadata: {}", source, error.what());
  }
}

// One of a few values by its name.
template <typename Value, std::size_t N>
Value read_name(const Json& metadata, const char* key, const std::array<Value, N>& values,
                const std::string& source) {
  const std::string text = read_text(metadata, key, source);
  for (const Value value : values)
    if (name(value) == text) return value;
  fail(ErrorCode::corrupt, "{}: metadata: {}: '{}' is unknown", source, key, text);
}

}  // namespace

void write_pairs(const std::filesystem::path& path, const SavedPairs& saved, const PairsOfRows& of) {
  ContainerWriter writer(path, std::string(pairs_kind));
  writer.set_minor_version(minor_version);
  writer.write_metadata(
      {{"metric", name(saved.metric)}, {"threshold", saved.threshold}, {"provenance", saved.provenance}});
  Column<std::uint64_t> offsets(writer, "offsets");
  std::uint64_t offset = 0;
  offsets.add(offset);
  of.counts([&](std::size_t count) { offsets.add(offset += count); });
  offsets.finish();
  Column<Id> ids(writer, "ids");
  of.pairs([&](Id later, float) { ids.add(later); });
  ids.finish();
  Column<float> distances(writer, "distances");
  of.pairs([&](Id, float distance) { distances.add(distance); });
  distances.finish();
  writer.commit();
}

void write_deduplication(const std::filesystem::path& path, const SavedDeduplication& saved,
                         const RemovedRows& of) {
  ContainerWriter writer(path, std::string(dedup_kind));
  writer.set_minor_version(minor_version);
  writer.write_metadata({{"metric", name(saved.metric)},
                         {"threshold", saved.threshold},
                         {"grouping", name(saved.grouping)},
                         {"keep", name(saved.keep)},
                         {"pairs", saved.deduplication.pairs},
                         {"provenance", saved.provenance}});
  Column<Id> kept(writer, "kept");
  for (std::size_t row = 0; row < of.rows; ++row)
    if (of.removed_by(row) == no_id) kept.add(static_cast<Id>(row));
  kept.finish();
  write_column<Id>(writer, "groups", of.rows, of.kept_by);
  write_column<Id>(writer, "removed_by", of.rows, of.removed_by);
  write_column<float>(writer, "distances", of.rows, of.distance);
  writer.commit();
}

}  // namespace duplicates

void save(const SavedPairs& saved, const std::filesystem::path& path) {
  duplicates::check_pairs(saved, "save " + path.native(), ErrorCode::invalid_argument);
  const RangeNeighbors& pairs = saved.pairs;
  const std::size_t rows = pairs.offsets.size() - 1;
  duplicates::write_pairs(path, saved,
                          {.counts =
                               [&](const auto& add) {
                                 for (std::size_t row = 0; row < rows; ++row)
                                   add(pairs.offsets[row + 1] - pairs.offsets[row]);
                               },
                           .pairs =
                               [&](const auto& add) {
                                 for (std::size_t i = 0; i < pairs.ids.size(); ++i)
                                   add(pairs.ids[i], pairs.distances[i]);
                               }});
}

SavedPairs load_pairs(const std::filesystem::path& path) {
  static_assert(std::is_same_v<std::size_t, std::uint64_t>);
  const LostPagesScope lost_pages;
  const ContainerReader reader = ContainerReader::open(path);
  reader.expect(duplicates::pairs_kind, {"metadata", "offsets", "ids", "distances"});
  reader.verify();
  const nlohmann::json metadata = reader.metadata();
  SavedPairs saved = {.pairs = {.offsets = duplicates::read_column<std::uint64_t>(reader, "offsets"),
                                .ids = duplicates::read_column<Id>(reader, "ids"),
                                .distances = duplicates::read_column<float>(reader, "distances")},
                      .metric = duplicates::read_metric(metadata, reader.source()),
                      .threshold = duplicates::read_threshold(metadata, reader.source()),
                      .provenance = read_provenance(metadata, reader.source())};
  duplicates::check_pairs(saved, reader.source(), ErrorCode::corrupt);
  return saved;
}

void save(const SavedDeduplication& saved, const std::filesystem::path& path) {
  duplicates::check_deduplication(saved, "save " + path.native(), ErrorCode::invalid_argument);
  const Deduplication& of = saved.deduplication;
  duplicates::write_deduplication(path, saved,
                                  {.rows = of.groups.size(),
                                   .kept_by = [&](std::size_t row) { return of.groups[row]; },
                                   .removed_by = [&](std::size_t row) { return of.removed_by[row]; },
                                   .distance = [&](std::size_t row) { return of.distances[row]; }});
}

SavedDeduplication load_deduplication(const std::filesystem::path& path) {
  const LostPagesScope lost_pages;
  const ContainerReader reader = ContainerReader::open(path);
  reader.expect(duplicates::dedup_kind, {"metadata", "kept", "groups", "removed_by", "distances"});
  reader.verify();
  const nlohmann::json metadata = reader.metadata();
  const std::string& source = reader.source();
  SavedDeduplication saved = {
      .deduplication = {.kept = duplicates::read_column<Id>(reader, "kept"),
                        .groups = duplicates::read_column<Id>(reader, "groups"),
                        .removed_by = duplicates::read_column<Id>(reader, "removed_by"),
                        .distances = duplicates::read_column<float>(reader, "distances"),
                        .pairs = read_number(metadata, "pairs", source)},
      .metric = duplicates::read_metric(metadata, source),
      .threshold = duplicates::read_threshold(metadata, source),
      .grouping = duplicates::read_name(
          metadata, "grouping", std::array{DuplicateGrouping::star, DuplicateGrouping::connected}, source),
      .keep = duplicates::read_name(metadata, "keep",
                                    std::array{KeptRow::first, KeptRow::medoid, KeptRow::scored}, source),
      .provenance = read_provenance(metadata, source)};
  duplicates::check_deduplication(saved, source, ErrorCode::corrupt);
  return saved;
}

}  // namespace nearwise

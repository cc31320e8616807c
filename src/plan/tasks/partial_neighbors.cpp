#include "plan/tasks/partial_neighbors.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/checked.h"
#include "core/distance.h"
#include "io/container/metadata.h"

namespace nearwise::plan {

std::uint64_t count_in(const ContainerReader& reader, const std::string& key, std::uint64_t most) {
  const nlohmann::json metadata = reader.metadata();
  if (!metadata.contains(key) || !metadata.at(key).is_number_unsigned())
    fail(ErrorCode::corrupt, "{}: metadata: expected an unsigned integer '{}'", reader.source(), key);
  const auto count = metadata.at(key).get<std::uint64_t>();
  if (count > most)
    fail(ErrorCode::corrupt, "{}: metadata: '{}' of at most {} expected, {} found", reader.source(), key,
         most, count);
  return count;
}

std::uint64_t most_updates(const GraphWork& work, std::size_t rows) {
  const std::size_t degree = std::min(work.options.degree, work.shape.rows);
  return bounded_product<std::uint64_t>(bounded_product<std::uint64_t>(rows, degree, most_metadata_number), 2,
                                        most_metadata_number);
}

namespace {

// Checks the shape of the lists and that ids are rows of the file.
void check_lists(const ContainerReader& reader, const MatrixView<const std::uint32_t>& ids,
                 const MatrixView<const float>& distances, std::size_t rows, const GraphWork& work) {
  for (const auto& [rows_found, cols_found] :
       {std::pair(ids.rows(), ids.cols()), std::pair(distances.rows(), distances.cols())})
    if (rows_found != rows || cols_found != work.options.degree)
      fail(ErrorCode::corrupt, "{}: expected [{}, {}], found [{}, {}]", reader.source(), rows,
           work.options.degree, rows_found, cols_found);
  const std::span<const std::uint32_t> all(ids.data(), rows * work.options.degree);
  if (std::ranges::any_of(all, [&](std::uint32_t id) { return id >= work.shape.rows && id != no_row; }))
    fail(ErrorCode::corrupt, "{}: a neighbour is not a row", reader.source());
}

}  // namespace

PartialNeighbors::PartialNeighbors(const GraphWork& work, std::size_t pass, std::size_t first_row,
                                   std::size_t count) {
  for (std::size_t group = 0; group < work.shape.groups; ++group) {
    readers_.push_back(ContainerReader::open(work.file_of(build_name(pass, group))));
    const ContainerReader& reader = readers_.back();
    const std::uint64_t batches = count_in(reader, "batches", reader.sections().size());
    for (std::uint64_t batch = 0; batch < batches; ++batch) {
      const auto section = [&](const char* name) {
        return reader.section(fmt::format("{}_{}", name, batch));
      };
      const auto rows = section("rows").rows<std::uint32_t>();
      const std::span<const std::uint32_t> all(rows.data(), rows.rows());
      const auto begin = std::ranges::lower_bound(all, first_row);
      const auto end = std::ranges::lower_bound(all, first_row + count);
      const auto first = static_cast<std::size_t>(begin - all.begin());
      const auto of_block = static_cast<std::size_t>(end - begin);
      if (of_block == 0) continue;
      for (const char* const name : {"ids", "distances"})
        if (section(name).info().rows != all.size())
          fail(ErrorCode::corrupt, "{}: expected {} lists, found {}", reader.source(), all.size(),
               section(name).info().rows);
      // Reads and verifies the block's part only, because every block reads every group.
      const auto ids = section("ids").rows<std::uint32_t>(first, of_block);
      const auto distances = section("distances").rows<float>(first, of_block);
      check_lists(reader, ids, distances, of_block, work);
      runs_.push_back({.rows = all.subspan(first, of_block), .ids = ids, .distances = distances});
    }
  }
}

void PartialNeighbors::append(std::uint32_t row, Metric metric, std::vector<NeighborEntry>& entries) const {
  for (const Run& run : runs_) {
    const auto found = std::ranges::lower_bound(run.rows, row);
    if (found == run.rows.end() || *found != row) continue;
    const auto at = static_cast<std::size_t>(found - run.rows.begin());
    append_entries(metric, run.ids.row(at), run.distances.row(at), true, entries);
  }
}

void append_entries(Metric metric, std::span<const std::uint32_t> ids, std::span<const float> distances,
                    bool is_new, std::vector<NeighborEntry>& entries) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] != no_row) entries.push_back(make_entry(sort_key(metric, distances[i]), ids[i], is_new));
}

std::uint64_t put_best(Metric metric, std::vector<NeighborEntry>& entries, std::span<std::uint32_t> ids,
                       std::span<float> distances) {
  std::ranges::sort(entries);
  // Of a new and an old entry for the same row, the old one sorts first and stays.
  entries.erase(std::unique(entries.begin(), entries.end(),
                            [](NeighborEntry a, NeighborEntry b) { return as_old(a) == as_old(b); }),
                entries.end());
  std::uint64_t new_count = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool real = i < entries.size();
    ids[i] = real ? number_of(entries[i]) : no_row;
    distances[i] = real ? distance_of_key(metric, key_of(entries[i])) + 0.0F : padding_distance(metric);
    new_count += real && is_new(entries[i]) ? 1 : 0;
  }
  return new_count;
}

MergedBlock::MergedBlock(const GraphWork& work, std::size_t block, const std::string& task,
                         const std::string& prefix)
    : reader(ContainerReader::open(work.file_of(task))),
      ids(reader.section(prefix + "ids").rows<std::uint32_t>()),
      distances(reader.section(prefix + "distances").rows<float>()),
      updates(count_in(reader, prefix + "updates", most_updates(work, work.shape.rows_of(block)))) {
  check_lists(reader, ids, distances, work.shape.rows_of(block), work);
}

std::vector<MergedBlock> merged_blocks(const GraphWork& work, std::size_t pass) {
  std::vector<MergedBlock> blocks;
  for (std::size_t block = 0; block < work.shape.blocks; ++block)
    blocks.emplace_back(work, block, merge_name(pass, block));
  return blocks;
}

}  // namespace nearwise::plan

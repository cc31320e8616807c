#include "nearwise/graph/graph_export.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "core/cancellable.h"
#include "core/check.h"
#include "graph/use/edges.h"
#include "io/vectors/npz_writer.h"

namespace nearwise {
namespace {

struct Entries {
  std::span<const Id> ids;
  std::span<const float> distances;
};

struct Shape {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t entries = 0;
};

template <typename Index, typename EntriesOf>
void write_arrays(NpzWriter& archive, const Shape& shape, const EntriesOf& entries_of) {
  constexpr std::string_view descr = sizeof(Index) == 4 ? "<i4" : "<i8";
  std::vector<Index> numbers;
  const auto append_numbers = [&] { archive.append(std::as_bytes(std::span(numbers))); };

  archive.begin_array("indices", descr, {shape.entries});
  for (std::size_t row = 0; row < shape.rows; ++row) {
    const std::span<const Id> ids = entries_of(row).ids;
    numbers.assign(ids.begin(), ids.end());
    append_numbers();
  }
  archive.begin_array("indptr", descr, {shape.rows + 1});
  std::size_t end = 0;
  numbers.assign(1, 0);
  append_numbers();
  for (std::size_t row = 0; row < shape.rows; ++row) {
    end += entries_of(row).ids.size();
    numbers.assign(1, static_cast<Index>(end));
    append_numbers();
  }
  archive.begin_array("data", "<f4", {shape.entries});
  for (std::size_t row = 0; row < shape.rows; ++row) archive.append(std::as_bytes(entries_of(row).distances));
}

// entries_of(row) is called several times for each row, in order.
template <typename EntriesOf>
void write_csr(const std::filesystem::path& path, const Shape& shape, const EntriesOf& entries_of) {
  require(path.extension() == ".npz", "save {}: a name that ends in .npz expected", path.native());
  NpzWriter archive(path);
  // SciPy uses one integer type for both arrays and copies others.
  constexpr std::size_t most = std::numeric_limits<std::int32_t>::max();
  if (shape.entries <= most && shape.columns <= most)
    write_arrays<std::int32_t>(archive, shape, entries_of);
  else
    write_arrays<std::int64_t>(archive, shape, entries_of);
  const std::array<std::int64_t, 2> sizes = {static_cast<std::int64_t>(shape.rows),
                                             static_cast<std::int64_t>(shape.columns)};
  archive.begin_array("shape", "<i8", {2});
  archive.append(std::as_bytes(std::span(sizes)));
  archive.begin_array("format", "|S3", {});
  archive.append(std::as_bytes(std::span("csr", 3)));
  archive.commit();
}

}  // namespace

void save_csr(const KnnGraph& graph, const std::filesystem::path& path) {
  graph::check_edges("save_csr", graph);
  std::size_t entries = 0;
  graph::for_each_edge(graph, [&](std::uint32_t, std::uint32_t, float) { ++entries; });
  std::vector<Id> ids;
  std::vector<float> distances;
  write_csr(path, {.rows = graph.rows(), .columns = graph.rows(), .entries = entries},
            [&](std::size_t row) -> Entries {
              ids.clear();
              distances.clear();
              for (std::size_t i = 0; i < graph.degree(); ++i) {
                if (graph.neighbors.ids(row, i) == no_id) continue;
                ids.push_back(graph.neighbors.ids(row, i));
                distances.push_back(graph.neighbors.distances(row, i));
              }
              return {ids, distances};
            });
}

void save_csr(const RangeNeighbors& neighbors, std::size_t columns, const std::filesystem::path& path) {
  const std::vector<std::size_t>& offsets = neighbors.offsets;
  const std::size_t entries = neighbors.ids.size();
  require(!offsets.empty() && offsets.front() == 0 && offsets.back() == entries &&
              std::ranges::is_sorted(offsets) && neighbors.distances.size() == entries,
          "save_csr: offsets from 0 to the number of ids and distances expected, got {} offsets of {} ids "
          "and {} "
          "distances",
          offsets.size(), entries, neighbors.distances.size());
  check_cancelled();
  CancellableSteps steps;
  for (const Id id : neighbors.ids) {
    steps.add(1);
    require(id >= 0 && static_cast<std::size_t>(id) < columns, "save_csr: ids from 0 to {} expected, got {}",
            static_cast<Id>(columns) - 1, id);
  }
  write_csr(path, {.rows = offsets.size() - 1, .columns = columns, .entries = entries},
            [&](std::size_t row) -> Entries {
              const std::size_t first = offsets[row];
              const std::size_t count = offsets[row + 1] - first;
              return {std::span(neighbors.ids).subspan(first, count),
                      std::span(neighbors.distances).subspan(first, count)};
            });
}

}  // namespace nearwise

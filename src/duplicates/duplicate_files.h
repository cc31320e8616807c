// Containers of kinds "pairs" and "deduplication" (docs/format.md), for results in memory and larger than it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "io/container/container_writer.h"
#include "nearwise/dedup.h"

namespace nearwise::duplicates {

inline constexpr std::string_view pairs_kind = "pairs";
inline constexpr std::string_view dedup_kind = "deduplication";
inline constexpr std::uint16_t minor_version = 5;  // the first with these kinds

// Each calls `add` row after row. `pairs` is called twice: ids and distances are sections of their own.
struct PairsOfRows {
  using AddCount = std::function<void(std::size_t count)>;
  std::function<void(const AddCount& add)> counts;
  using AddPair = std::function<void(Id later, float distance)>;
  std::function<void(const AddPair& add)> pairs;
};
// saved: without pairs.
void write_pairs(const std::filesystem::path& path, const SavedPairs& saved, const PairsOfRows& of);

struct RemovedRows {
  std::size_t rows = 0;
  std::function<Id(std::size_t row)> kept_by;
  std::function<Id(std::size_t row)> removed_by;  // no_id: it is kept
  std::function<float(std::size_t row)> distance;
};
// saved: of the deduplication, `pairs` alone.
void write_deduplication(const std::filesystem::path& path, const SavedDeduplication& saved,
                         const RemovedRows& of);

}  // namespace nearwise::duplicates

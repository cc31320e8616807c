// Prepares the members of an index concurrently, each in its own context.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/check.h"
#include "nearwise/sharded.h"
#include "shard/at_once.h"

namespace nearwise::shard {

struct Rows {
  std::size_t first = 0;
  std::size_t count = 0;
};

inline Rows part_of(std::size_t rows, std::size_t part, std::size_t parts) {
  const std::size_t first = rows * part / parts;
  return {first, rows * (part + 1) / parts - first};
}

// prepare(context, rows) builds the index of the rows rows_of(member). `kind` is for messages.
template <typename Index, typename Prepare>
std::vector<Placed<Index>> prepare_at_once(const char* kind, std::span<const Context> contexts, Metric metric,
                                           const std::function<Rows(std::size_t)>& rows_of,
                                           const Prepare& prepare) {
  require(!contexts.empty(), "{}: at least one context is needed, got none", kind);
  Members members;
  Work work = {.operation = "prepare", .units = {}, .run = {}};
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    const std::size_t rows = rows_of(i).count;
    members.push_back({contexts[i], rows, metric});
    work.units.push_back(std::max<std::size_t>(1, rows));
  }
  std::vector<std::optional<Index>> prepared(contexts.size());
  work.run = [&](std::size_t i, const Context& context) { prepared[i] = prepare(context, rows_of(i)); };
  run_at_once(contexts.front(), members, work);
  std::vector<Placed<Index>> placed;
  for (std::size_t i = 0; i < contexts.size(); ++i) placed.push_back({contexts[i], std::move(*prepared[i])});
  return placed;
}

// contexts.size() / shards consecutive members per shard. prepare_all(rows_of) prepares all of them.
template <typename Index, typename PrepareAll>
Sharded<Replicated<Index>> prepare_nested(const char* kind, std::span<const Context> contexts,
                                          std::size_t shards, std::size_t rows,
                                          const PrepareAll& prepare_all) {
  require(shards >= 1 && contexts.size() % shards == 0 && !contexts.empty(),
          "{}: the number of contexts must be a multiple of the shards, got {} and {}", kind, contexts.size(),
          shards);
  const std::size_t copies = contexts.size() / shards;
  std::vector<Placed<Index>> prepared =
      prepare_all([&](std::size_t i) { return part_of(rows, i / copies, shards); });
  std::vector<Placed<Replicated<Index>>> parts;
  for (std::size_t shard = 0; shard < shards; ++shard) {
    std::vector<Placed<Index>> of_shard;
    for (std::size_t copy = 0; copy < copies; ++copy)
      of_shard.push_back(std::move(prepared[shard * copies + copy]));
    const Context context = of_shard.front().context;
    parts.push_back({context, Replicated<Index>(std::move(of_shard))});
  }
  return Sharded<Replicated<Index>>(std::move(parts));
}

}  // namespace nearwise::shard

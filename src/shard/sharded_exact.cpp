// Exact search over several devices: every device prepares its own rows, all at once.
#include <algorithm>
#include <optional>

#include "core/check.h"
#include "nearwise/sharded.h"
#include "shard/at_once.h"

namespace nearwise {
namespace {

struct Rows {
  std::size_t first = 0;
  std::size_t count = 0;
};

Rows part_of(const RowsView& base, std::size_t part, std::size_t parts) {
  const std::size_t first = base.rows() * part / parts;
  return {first, base.rows() * (part + 1) / parts - first};
}

// An index in every context, each over the rows that are its own.
std::vector<Placed<Exact>> prepare_at_once(std::span<const Context> contexts, const RowsView& base,
                                           const ExactOptions& options,
                                           const std::function<Rows(std::size_t)>& rows_of) {
  require(!contexts.empty(), "Exact: at least one context is needed, given none");
  shard::Members members;
  shard::Work work = {.operation = "prepare", .units = {}, .run = {}};
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    const std::size_t rows = rows_of(i).count;
    members.push_back({contexts[i], rows, options.metric});
    work.units.push_back(std::max<std::size_t>(1, rows));
  }
  std::vector<std::optional<Exact>> prepared(contexts.size());
  work.run = [&](std::size_t i, const Context& context) {
    const Rows rows = rows_of(i);
    prepared[i] = Exact::prepare(context, base.slice(rows.first, rows.count), options, rows.first);
  };
  shard::run_at_once(contexts.front(), members, work);
  std::vector<Placed<Exact>> placed;
  for (std::size_t i = 0; i < contexts.size(); ++i) placed.push_back({contexts[i], std::move(*prepared[i])});
  return placed;
}

}  // namespace

Sharded<Exact> shard_exact(std::span<const Context> contexts, RowsView base, const ExactOptions& options) {
  return Sharded<Exact>(prepare_at_once(contexts, base, options,
                                        [&](std::size_t i) { return part_of(base, i, contexts.size()); }));
}

Replicated<Exact> replicate_exact(std::span<const Context> contexts, RowsView base,
                                  const ExactOptions& options) {
  return Replicated<Exact>(prepare_at_once(contexts, base, options, [&](std::size_t) {
    return Rows{0, base.rows()};
  }));
}

Sharded<Replicated<Exact>> shard_and_replicate_exact(std::span<const Context> contexts, std::size_t shards,
                                                     RowsView base, const ExactOptions& options) {
  require(shards >= 1 && contexts.size() % shards == 0 && !contexts.empty(),
          "Exact: the number of contexts must be a multiple of the shards, given {} and {}", contexts.size(),
          shards);
  const std::size_t copies = contexts.size() / shards;
  std::vector<Placed<Exact>> prepared = prepare_at_once(
      contexts, base, options, [&](std::size_t i) { return part_of(base, i / copies, shards); });
  std::vector<Placed<Replicated<Exact>>> parts;
  for (std::size_t shard = 0; shard < shards; ++shard) {
    std::vector<Placed<Exact>> of_shard;
    for (std::size_t copy = 0; copy < copies; ++copy)
      of_shard.push_back(std::move(prepared[shard * copies + copy]));
    const Context context = of_shard.front().context;
    parts.push_back({context, Replicated<Exact>(std::move(of_shard))});
  }
  return Sharded<Replicated<Exact>>(std::move(parts));
}

}  // namespace nearwise

// Exact search over several devices, prepared concurrently.
#include "nearwise/sharded.h"
#include "shard/prepare.h"

namespace nearwise {
namespace {

using shard::Rows;

std::vector<Placed<Exact>> prepare_at_once(std::span<const Context> contexts, const RowsView& base,
                                           const ExactOptions& options,
                                           const std::function<Rows(std::size_t)>& rows_of) {
  return shard::prepare_at_once<Exact>(
      "Exact", contexts, options.metric, rows_of, [&](const Context& context, const Rows& rows) {
        return Exact::prepare(context, base.slice(rows.first, rows.count), options, rows.first);
      });
}

}  // namespace

Sharded<Exact> shard_exact(std::span<const Context> contexts, RowsView base, const ExactOptions& options) {
  return Sharded<Exact>(prepare_at_once(contexts, base, options, [&](std::size_t i) {
    return shard::part_of(base.rows(), i, contexts.size());
  }));
}

Replicated<Exact> replicate_exact(std::span<const Context> contexts, RowsView base,
                                  const ExactOptions& options) {
  return Replicated<Exact>(prepare_at_once(contexts, base, options, [&](std::size_t) {
    return Rows{0, base.rows()};
  }));
}

Sharded<Replicated<Exact>> shard_and_replicate_exact(std::span<const Context> contexts, std::size_t shards,
                                                     RowsView base, const ExactOptions& options) {
  return shard::prepare_nested<Exact>("Exact", contexts, shards, base.rows(), [&](const auto& rows_of) {
    return prepare_at_once(contexts, base, options, rows_of);
  });
}

}  // namespace nearwise

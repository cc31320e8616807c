// A search of all parts of an index, and the best of their results.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "backend/context_state.h"
#include "core/checked.h"
#include "nearwise/sharded.h"
#include "ops/memory_limit.h"
#include "ops/merge_neighbors.h"
#include "shard/at_once.h"

namespace nearwise::shard {

// Ids of different parts must differ. stage: what progress calls it.
template <typename Options>
Neighbors merge_parts(const char* operation, const Context& context, const Members& parts,
                      const RowsView& queries, std::size_t k, const Options& options,
                      const Search<Options>& search, const char* stage = "search") {
  // The results of the parts and the merged one.
  const std::uint64_t entries =
      checked_multiply(checked_multiply(queries.rows(), k, operation), parts.size() + 1, operation);
  const std::uint64_t bytes = checked_multiply(entries, std::uint64_t{sizeof(Id) + sizeof(float)}, operation);
  check_memory(operation, context, bytes);
  const Reservation reservation(*context.state().budget, bytes);
  std::vector<Neighbors> answers(parts.size());
  Work work = {.operation = stage, .units = {}, .run = [&](std::size_t part, const Context& own) {
                 answers[part] = search(part, own, queries, k, options);
               }};
  // Parts without vectors are searched too, since they check the arguments.
  for (const Member& part : parts) work.units.push_back(std::max<std::size_t>(1, part.size));
  run_at_once(context, parts, work);
  std::vector<NeighborsView> views;
  for (const Neighbors& answer : answers) views.push_back({answer.ids.view(), answer.distances.view()});
  Neighbors merged{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
  merge_neighbors(*context.state().threads, parts.front().metric, views, merged.ids.view(),
                  merged.distances.view());
  return merged;
}

}  // namespace nearwise::shard

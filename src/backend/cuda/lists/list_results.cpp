#include "backend/cuda/lists/list_results.h"

#include <algorithm>
#include <cstring>

#include "backend/cuda/device/host_results.h"
#include "backend/cuda/lists/list_scorer.h"
#include "core/distance.h"

namespace nearwise::gpu {

void write_list_row(const ListSearchArgs& args, const ListTiles::Place& place, std::byte* out) {
  decode_rows(args.codec, args.lists[place.list], place.list, place.row, 1, out);
}

PairEvaluator::Shape evaluated_shape(const ListSearchArgs& args) {
  const std::size_t dim = args.codec.dim;
  const std::size_t stored = dim * element_size(args.codec.type);
  const RerankVectors& vectors = args.rerank;
  const bool gathered = vectors.any() && !(vectors.by_id() && vectors.rows.place().kind != DeviceKind::cpu);
  return {.dim = dim,
          .query_bytes = dim * element_size(args.queries.type()),
          .row_bytes = gathered ? std::max(stored, dim * element_size(vectors.type())) : stored};
}

std::uint64_t ListResults::bytes(std::size_t queries, std::size_t candidates, std::size_t taken) {
  const std::size_t entries = queries * candidates;
  return 2 * device_bytes(entries, sizeof(float)) + 2 * device_bytes(entries, sizeof(Id)) +
         device_bytes(RowSelection(queries, candidates, taken).workspace_bytes(), 1) +
         buffer_bytes(entries, sizeof(std::uint64_t)) + buffer_bytes(entries, sizeof(std::uint32_t)) +
         buffer_bytes(entries, sizeof(float)) + buffer_bytes(entries, sizeof(Id));
}

ListResults::ListResults(const CudaStream& stream, const ListSearchArgs& args, PairEvaluator& evaluator,
                         std::size_t queries)
    : stream_(stream),
      args_(args),
      evaluator_(evaluator),
      taken_(std::min(args.k, args.candidates)),
      selection_(queries, args.candidates, taken_) {
  if (!args.rerank.any()) return;
  const std::size_t entries = queries * args.candidates;
  keys_ = DeviceBuffer<float>(stream, entries, list_search_name);
  ids_ = DeviceBuffer<Id>(stream, entries, list_search_name);
  best_keys_ = DeviceBuffer<float>(stream, queries * taken_, list_search_name);
  best_ids_ = DeviceBuffer<Id>(stream, queries * taken_, list_search_name);
  workspace_ = DeviceBuffer<std::byte>(stream, selection_.workspace_bytes(), list_search_name);
  slots_ = Buffer<std::uint64_t>(stream.budget(), entries);
  row_indices_ = Buffer<std::uint32_t>(stream.budget(), entries);
  host_keys_ = Buffer<float>(stream.budget(), queries * taken_);
  host_ids_ = Buffer<Id>(stream.budget(), queries * taken_);
}

void ListResults::write(std::size_t first_query, std::span<const float> keys, std::span<const Id> ids,
                        std::span<const ListTiles::Place> places, std::span<const bool> certified) {
  if (args_.rerank.any()) {
    rerank(first_query, ids, places, certified);
    return;
  }
  const std::size_t length = args_.candidates;
  for (std::size_t i = 0; i < certified.size(); ++i)
    if (certified[i])
      write_row(first_query + i, keys.subspan(i * length, length), ids.subspan(i * length, length));
}

void ListResults::rerank(std::size_t first_query, std::span<const Id> ids,
                         std::span<const ListTiles::Place> places, std::span<const bool> certified) {
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < certified.size(); ++i)
    for (std::size_t slot = i * args_.candidates; certified[i] && slot < (i + 1) * args_.candidates; ++slot) {
      if (ids[slot] == no_id) continue;
      slots_[pairs] = slot;
      row_indices_[pairs++] = static_cast<std::uint32_t>(ids[slot]);
    }
  const RerankVectors& vectors = args_.rerank;
  const std::span<const std::uint64_t> slots(slots_.data(), pairs);
  check(cudaMemsetAsync(keys_.data(), 0xFF, ids.size() * sizeof(float), stream_.handle()), list_search_name);
  copy_to_device(stream_, ids, ids_.data(), list_search_name);
  const std::size_t row_bytes = args_.codec.dim * element_size(vectors.type());
  if (vectors.by_id() && vectors.rows.place().kind != DeviceKind::cpu)
    evaluator_.evaluate(vectors.rows, slots, {row_indices_.data(), pairs}, args_.candidates, keys_.data());
  else
    evaluator_.evaluate(vectors.type(), slots, args_.candidates, keys_.data(),
                        [&](std::size_t pair, std::byte* out) {
                          const std::byte* row = nullptr;
                          if (vectors.by_id()) {
                            row = vectors.rows.row(row_indices_[pair]);
                          } else {
                            const ListTiles::Place& place = places[slots_[pair]];
                            row = vectors.read(args_.lists[place.list], place.row, out);
                          }
                          if (row != out) std::memcpy(out, row, row_bytes);
                        });
  selection_.run(stream_.handle(), Ties::wide_ids,
                 {.values = keys_.data(),
                  .value_stride = args_.candidates,
                  .wide_ids = ids_.data(),
                  .id_stride = args_.candidates,
                  .rows = certified.size(),
                  .cols = static_cast<std::uint32_t>(args_.candidates),
                  .k = static_cast<std::uint32_t>(taken_),
                  .best = best_keys_.data(),
                  .ids = best_ids_.data(),
                  .best_stride = taken_},
                 workspace_.data());
  const std::size_t results = certified.size() * taken_;
  HostResults copies(stream_);
  copies.add(best_keys_.data(), host_keys_.span().first(results), list_search_name);
  copies.add(best_ids_.data(), host_ids_.span().first(results), list_search_name);
  copies.finish(list_search_name);
  for (std::size_t i = 0; i < certified.size(); ++i)
    if (certified[i])
      write_row(first_query + i, host_keys_.span().subspan(i * taken_, taken_),
                host_ids_.span().subspan(i * taken_, taken_));
}

void ListResults::write_row(std::size_t query, std::span<const float> keys, std::span<const Id> ids) {
  for (std::size_t i = 0; i < args_.k; ++i) {
    const bool found = i < ids.size() && ids[i] != no_id;
    args_.ids(query, i) = found ? ids[i] : no_id;
    args_.distances(query, i) =
        found ? distance_of_key(args_.metric, keys[i]) : padding_distance(args_.metric);
  }
}

}  // namespace nearwise::gpu

#include "cluster/split.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "cluster/random_streams.h"
#include "cluster/row_values.h"
#include "core/lost_pages.h"
#include "core/memory.h"

namespace nearwise::cluster {
namespace {

std::size_t begin_of(std::span<const std::uint64_t> ends, std::size_t cluster) {
  return cluster == 0 ? 0 : ends[cluster - 1];
}
std::size_t size_of(std::span<const std::uint64_t> ends, std::size_t cluster) {
  return ends[cluster] - begin_of(ends, cluster);
}

// Heap order: the largest error first, ties by lower number.
bool gives_later(const Donor& left, const Donor& right) {
  return left.error < right.error || (left.error == right.error && left.cluster > right.cluster);
}

// Small clusters, donors and drawn members are each at most as many as clusters.
std::uint64_t list_bytes(std::size_t clusters) {
  return clusters *
         (sizeof(std::size_t) + 2 * sizeof(Donor) + sizeof(std::vector<Drawn>) + 3 * sizeof(Drawn));
}

}  // namespace

std::vector<Donor> choose_donors(std::span<const std::uint64_t> ends, std::span<const double> errors,
                                 std::size_t min_cluster_size) {
  std::size_t weak = 0;
  for (std::size_t c = 0; c < ends.size(); ++c) weak += size_of(ends, c) < min_cluster_size ? 1U : 0U;
  std::vector<Donor> heap;
  for (std::size_t c = 0; c < ends.size() && weak > 0; ++c)
    if (errors[c] > 0 && size_of(ends, c) >= 2 * min_cluster_size) heap.push_back({errors[c], c, 1});
  std::make_heap(heap.begin(), heap.end(), gives_later);
  std::vector<Donor> full;
  for (std::size_t placed = 0; placed < weak && !heap.empty(); ++placed) {
    std::pop_heap(heap.begin(), heap.end(), gives_later);
    Donor donor = heap.back();
    heap.pop_back();
    ++donor.centroids;
    donor.error = errors[donor.cluster] / static_cast<double>(donor.centroids);
    const bool more = size_of(ends, donor.cluster) >= (donor.centroids + 1) * min_cluster_size;
    (more ? heap : full).push_back(donor);
    if (more) std::push_heap(heap.begin(), heap.end(), gives_later);
  }
  heap.insert(heap.end(), full.begin(), full.end());
  std::erase_if(heap, [](const Donor& donor) { return donor.centroids == 1; });
  std::ranges::sort(heap, {}, &Donor::cluster);
  return heap;
}

std::vector<Drawn> draw_members(const Context& context, const RaceArgs& args, const Donor& donor) {
  const Random random = random_stream(context.seed(), Draw::splits, args.round);
  const std::size_t count = donor.centroids - 1;
  Buffer<double> scratch(*context.state().budget, args.rows.dim());
  std::vector<Drawn> first;  // heap, the latest on top
  for (std::size_t i = begin_of(args.ends, donor.cluster); i < args.ends[donor.cluster]; ++i) {
    const std::uint32_t row = args.members[i];
    const double distance =
        squared_distance(args.rows, row, args.metric, scratch.span(), args.centroids.row(donor.cluster));
    if (!(distance > 0)) continue;
    first.emplace_back(arrival_time(random, args.first_row + row, distance), args.first_row + row);
    std::ranges::push_heap(first);
    if (first.size() <= count) continue;
    std::ranges::pop_heap(first);
    first.pop_back();
  }
  std::ranges::sort(first);
  return first;
}

std::uint64_t split_bytes(const Context& context, std::size_t clusters, std::size_t dim) {
  return list_bytes(clusters) +
         (static_cast<std::uint64_t>(context.threads()) + 1) * buffer_bytes(dim, sizeof(double));
}

std::size_t split_clusters(const Context& context, const SplitArgs& args) {
  const Reservation lists(*context.state().budget, list_bytes(args.ends.size()));
  std::vector<std::size_t> weak;
  for (std::size_t c = 0; c < args.ends.size(); ++c)
    if (size_of(args.ends, c) < args.min_cluster_size) weak.push_back(c);
  if (weak.empty()) return 0;
  const std::vector<Donor> donors = choose_donors(args.ends, args.errors, args.min_cluster_size);
  const RaceArgs race = {.rows = args.rows,
                         .metric = args.metric,
                         .members = args.members,
                         .ends = args.ends,
                         .round = args.round,
                         .centroids = args.centroids};
  std::vector<std::vector<Drawn>> drawn(donors.size());
  context.state().threads->for_each(donors.size(), [&](std::size_t i) {
    context.state().cancel.check();
    drawn[i] = draw_members(context, race, donors[i]);
  });
  // Centroids move after all draws, which use their current positions.
  Buffer<double> scratch(*context.state().budget, args.rows.dim());
  std::size_t moved = 0;
  for (const std::vector<Drawn>& rows : drawn)
    for (const auto& [time, row] : rows)
      row_to_centroid(args.rows, row, args.metric, scratch.span(), args.centroids.row(weak[moved++]));
  check_lost_pages();
  return moved;
}

}  // namespace nearwise::cluster

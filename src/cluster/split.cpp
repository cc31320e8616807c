#include "cluster/split.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "cluster/random_streams.h"
#include "cluster/row_values.h"
#include "core/memory.h"

namespace nearwise::cluster {
namespace {

std::size_t begin_of(const SplitArgs& args, std::size_t cluster) {
  return cluster == 0 ? 0 : args.ends[cluster - 1];
}
std::size_t size_of(const SplitArgs& args, std::size_t cluster) {
  return args.ends[cluster] - begin_of(args, cluster);
}

// A cluster and how many centroids it will have.
struct Donor {
  double error = 0;  // per centroid
  std::size_t cluster = 0;
  std::size_t centroids = 1;
  friend bool operator<(const Donor& left, const Donor& right) {
    // The largest error first in a heap, and of equal ones the lower number.
    return left.error < right.error || (left.error == right.error && left.cluster > right.cluster);
  }
};

// Weak clusters and donors are at most as many as there are clusters, and so are the members drawn, a vector for each donor.
std::uint64_t list_bytes(std::size_t clusters) {
  return clusters * (sizeof(std::size_t) + 2 * sizeof(Donor) + sizeof(std::vector<std::uint32_t>) +
                     3 * sizeof(std::pair<double, std::uint32_t>));
}

// Whom each of the weak clusters goes to; as many as can be placed. In order of clusters.
std::vector<Donor> choose_donors(const SplitArgs& args, std::size_t weak) {
  std::vector<Donor> heap;
  for (std::size_t c = 0; c < args.ends.size(); ++c)
    if (args.errors[c] > 0 && size_of(args, c) >= 2 * args.least_rows) heap.push_back({args.errors[c], c, 1});
  std::make_heap(heap.begin(), heap.end());
  std::vector<Donor> full;
  for (std::size_t placed = 0; placed < weak && !heap.empty(); ++placed) {
    std::pop_heap(heap.begin(), heap.end());
    Donor donor = heap.back();
    heap.pop_back();
    ++donor.centroids;
    donor.error = args.errors[donor.cluster] / static_cast<double>(donor.centroids);
    const bool more = size_of(args, donor.cluster) >= (donor.centroids + 1) * args.least_rows;
    (more ? heap : full).push_back(donor);
    if (more) std::push_heap(heap.begin(), heap.end());
  }
  heap.insert(heap.end(), full.begin(), full.end());
  std::erase_if(heap, [](const Donor& donor) { return donor.centroids == 1; });
  std::ranges::sort(heap, {}, &Donor::cluster);
  return heap;
}

// Members of a donor to become centroids, fewer where the others are at no distance.
std::vector<std::uint32_t> draw_members(const Context& context, const SplitArgs& args, const Donor& donor) {
  const Random random = random_stream(context.seed(), Draw::splits, args.round);
  const std::size_t count = donor.centroids - 1;
  Buffer<double> scratch(*context.state().budget, args.rows.dim());
  std::vector<std::pair<double, std::uint32_t>> first;  // a heap, the last to come on top
  for (std::size_t i = begin_of(args, donor.cluster); i < args.ends[donor.cluster]; ++i) {
    const std::uint32_t row = args.members[i];
    const double distance =
        squared_distance(args.rows, row, args.metric, scratch.span(), args.centroids.row(donor.cluster));
    if (!(distance > 0)) continue;
    first.emplace_back(arrival_time(random, row, distance), row);
    std::ranges::push_heap(first);
    if (first.size() <= count) continue;
    std::ranges::pop_heap(first);
    first.pop_back();
  }
  std::ranges::sort(first);
  std::vector<std::uint32_t> rows;
  for (const auto& [time, row] : first) rows.push_back(row);
  return rows;
}

}  // namespace

std::uint64_t split_bytes(const Context& context, std::size_t clusters, std::size_t dim) {
  return list_bytes(clusters) +
         (static_cast<std::uint64_t>(context.threads()) + 1) * buffer_bytes(dim, sizeof(double));
}

std::size_t split_clusters(const Context& context, const SplitArgs& args) {
  const Reservation lists(*context.state().budget, list_bytes(args.ends.size()));
  std::vector<std::size_t> weak;
  for (std::size_t c = 0; c < args.ends.size(); ++c)
    if (size_of(args, c) < args.least_rows) weak.push_back(c);
  if (weak.empty()) return 0;
  const std::vector<Donor> donors = choose_donors(args, weak.size());
  std::vector<std::vector<std::uint32_t>> drawn(donors.size());
  context.state().threads->for_each(donors.size(), [&](std::size_t i) {
    context.state().cancel.check();
    drawn[i] = draw_members(context, args, donors[i]);
  });
  // Centroids move only now: all were drawn by their distance from where they are.
  Buffer<double> scratch(*context.state().budget, args.rows.dim());
  std::size_t moved = 0;
  for (const std::vector<std::uint32_t>& rows : drawn)
    for (const std::uint32_t row : rows)
      row_to_centroid(args.rows, row, args.metric, scratch.span(), args.centroids.row(weak[moved++]));
  return moved;
}

}  // namespace nearwise::cluster

// The k nearest other vectors of every vector; each pair is multiplied once.
//
// Vectors are split into groups. A task multiplies two groups and updates the lists of both, so concurrent
// tasks must not share a group: they are scheduled as rounds of a round-robin tournament.
#include <algorithm>
#include <utility>
#include <vector>

#include "backend/cpu/operations.h"
#include "backend/cpu/rows/choose_scan.h"
#include "backend/cpu/rows/prepared_rows.h"
#include "backend/cpu/rows/row_evaluator.h"
#include "backend/cpu/rows/top_k.h"
#include "backend/cpu/stream.h"
#include "core/checked.h"
#include "core/progress.h"

namespace nearwise::cpu {
namespace {

// Entries of a candidate list. All vectors have one at the same time, in memory rather than in cache: entries
// cost more than in a search, so there are fewer.
std::size_t spare_for(std::size_t k) { return k + std::max<std::size_t>(k, 16); }

using Pairing = std::vector<std::pair<std::size_t, std::size_t>>;

// Round `round` of the circle method for an even number of groups: count - 1 rounds pair each group with
// every other one, and no group twice in a round.
Pairing pairs_of_round(std::size_t count, std::size_t round) {
  Pairing pairs;
  const std::size_t others = count - 1;
  pairs.emplace_back(round, others);
  for (std::size_t i = 1; i < count / 2; ++i)
    pairs.emplace_back((round + i) % others, (round + others - i) % others);
  return pairs;
}

struct Join {
  CpuStream& cpu;
  const PackedRows& queries;
  const PackedRows& base;
  TopK& found;
  std::size_t group_panels;
  ProgressMeter* progress;

  std::size_t groups() const { return divide_up(base.panel_count(), group_panels); }

  // Multiplies two groups, or one with itself.
  void multiply(std::size_t left, std::size_t right) const {
    cpu.context.cancel.check();
    const std::size_t query_panel = left * group_panels;
    const std::size_t base_panel = right * group_panels;
    const bool integers = is_integer(base.kernel.base_encoding);
    PairScanArgs args;
    args.query_panels = queries.panel(query_panel);
    args.query_panel_count = std::min(group_panels, queries.panel_count() - query_panel);
    args.first_query = query_panel * queries.width;
    args.base_panels = base.panel(base_panel);
    args.base_panel_count = std::min(group_panels, base.panel_count() - base_panel);
    args.first_row = static_cast<std::uint32_t>(base_panel * base.width);
    args.end_row = static_cast<std::uint32_t>(base.rows);
    args.row_bytes = base.row_bytes;
    if (integers) {
      args.integer_biases = base.integer_biases.data() + base_panel * base.width;
      args.half_biases = base.half_biases.data() + base_panel * base.width;
      args.integer_query_biases = base.integer_biases.data() + query_panel * base.width;
      args.half_query_biases = base.half_biases.data() + query_panel * base.width;
    } else {
      args.biases = base.biases.data() + base_panel * base.width;
      args.query_biases = base.biases.data() + query_panel * base.width;
    }
    args.diagonal = left == right;
    args.lists = found.lists();
    args.make_room = Candidates::make_room_of;
    args.owner = static_cast<Candidates*>(&found);
    base.kernel.scan_pairs(args);
    if (progress != nullptr) progress->add(pairs(left, right));
  }

  // Pairs of distinct vectors in the product of two groups, without padding.
  std::size_t pairs(std::size_t left, std::size_t right) const {
    return left == right ? group_rows(left) * (group_rows(left) - 1) / 2
                         : group_rows(left) * group_rows(right);
  }
  std::size_t group_rows(std::size_t group) const {
    const std::size_t most = group_panels * base.width;
    return std::min(most, base.rows - group * most);
  }

  void run() const {
    cpu.threads().for_each(groups(), [&](std::size_t group) { multiply(group, group); });
    const std::size_t even = round_up<std::size_t>(groups(), 2);
    for (std::size_t round = 0; round + 1 < even; ++round) {
      const Pairing pairs = pairs_of_round(even, round);
      cpu.threads().for_each(pairs.size(), [&](std::size_t i) {
        // If the number of groups is odd, one of them is idle in every round.
        if (std::max(pairs[i].first, pairs[i].second) < groups()) multiply(pairs[i].first, pairs[i].second);
      });
    }
  }
};

}  // namespace

SelfJoinCosts self_join_costs(const Stream& stream, const KnnCostsArgs& args) {
  const CpuStream& cpu = cpu_stream(stream);
  const ScanKernel scan = choose_scan(cpu.set, args.metric, args.base_type, args.base_type, args.dim);
  if (scan.scan_pairs == nullptr) return {};
  const std::uint64_t per_thread = PackedRows::scratch_bytes(scan, args.dim) + RowEvaluator::bytes(args.dim) +
                                   buffer_bytes(spare_for(args.k) + scan.base_width, sizeof(std::int64_t));
  return {.offered = true,
          .bytes_per_row = PackedRows::bytes_per_row(scan, RowsRole::queries, args.dim) +
                           PackedRows::bytes_per_row(scan, RowsRole::base, args.dim) +
                           TopK::bytes_per_query(args.k, scan.base_width, spare_for(args.k)),
          .fixed_bytes = 4096 + static_cast<std::uint64_t>(cpu.threads().count()) * per_thread,
          .row_granule = scan.base_width};
}

bool self_join(Stream& stream, const SelfJoinArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  PrepareArgs prepare = {.rows = args.rows,
                         .role = RowsRole::queries,
                         .type = args.type,
                         .against = args.type,
                         .metric = args.metric,
                         .centre = args.centre,
                         .first_row = 0};
  const auto queries = prepare_rows(stream, prepare);
  prepare.role = RowsRole::base;
  const auto base = prepare_rows(stream, prepare);
  const auto& packed_queries = static_cast<const PackedRows&>(*queries);
  const auto& packed_base = static_cast<const PackedRows&>(*base);
  if (!ScoreBound::holds_for(packed_base.longest, packed_base.longest)) return false;
  TopK found(cpu, packed_queries, args.rows, args.k, args.metric, spare_for(args.k));
  found.begin_block(args.rows, packed_base.longest);

  // Groups that fit the caches, and at least 8 per thread.
  const std::size_t panels = packed_base.panel_count();
  const std::size_t in_cache = packed_base.kernel.base_step_bytes / packed_base.panel_bytes();
  const std::size_t to_share = panels / (8 * static_cast<std::size_t>(cpu.threads().count()));
  const std::size_t group = std::clamp<std::size_t>(std::min(in_cache, to_share), 1, panels);
  Join{cpu, packed_queries, packed_base, found, group, args.progress}.run();

  finish_top_k(stream, {found, 0, args.ids, args.distances});
  return true;
}

}  // namespace nearwise::cpu

// Local join of NN-Descent: compares the members of groups with each other by products of dense panels.
//
// The vectors of a group are gathered into panels once and scanned for every joining member with the cutoff
// of its list. Candidates that pass are evaluated and inserted into the list under its lock. Scores only
// select what is evaluated: the lists have the same bytes on every instruction set and for any number of
// threads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backend/cpu/graph/join_rows.h"
#include "backend/cpu/kernels/prefetch.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/rows/choose_scan.h"
#include "core/checked.h"
#include "core/convert.h"
#include "core/distance.h"

namespace nearwise::cpu {
namespace {

// Approximate members per task: enough to amortize its buffers.
constexpr std::uint64_t task_members = 16384;
// Queries per scan.
constexpr std::size_t max_queries = 256;
constexpr std::size_t store_slack = 16;  // entries past the end that a vector store may write
constexpr std::size_t batch = 64;        // maximum rows per evaluation
constexpr std::uint32_t no_place = std::numeric_limits<std::uint32_t>::max();

std::size_t capacity_of(std::size_t degree, const ScanKernel& scan) {
  return degree + 1 + std::max<std::size_t>(degree, 32) + scan.base_width;
}

std::size_t query_places(const ScanKernel& scan) { return round_up(max_queries, scan.query_width); }

// Joins one group at a time. Not thread-safe.
class Joiner {
 public:
  Joiner(CpuStream& cpu, JoinRows& rows, std::size_t max_members)
      : cpu_(cpu),
        rows_(rows),
        scan_(rows.scan),
        metric_(rows.args().metric),
        degree_(rows.args().degree),
        prefetched_bytes_(
            std::min<std::size_t>(rows.args().rows.dim() * element_size(rows.args().rows.type()), 512)),
        // New and old members are padded to whole panels separately.
        base_places_(round_up(max_members, scan_.base_width) + scan_.base_width),
        capacity_(capacity_of(degree_, scan_)),
        stride_(capacity_ + store_slack),
        places_(cpu.budget(), base_places_),
        base_panels_(cpu.budget(), base_places_ * rows.row_bytes),
        biases_(cpu.budget(), base_places_),
        integer_biases_(cpu.budget(), base_places_),
        half_biases_(cpu.budget(), base_places_),
        query_panels_(cpu.budget(), query_places(scan_) * rows.row_bytes),
        scores_(cpu.budget(), query_places(scan_) * stride_),
        locals_(cpu.budget(), query_places(scan_) * stride_),
        counts_(cpu.budget(), query_places(scan_)),
        cutoffs_(cpu.budget(), query_places(scan_)),
        known_(cpu.budget(), degree_),
        query_values_(cpu.budget(), rows.args().rows.dim()) {}

  static std::uint64_t bytes_per_member(const ScanKernel& scan, std::size_t dim) {
    return encoded_row_bytes(scan, dim) + 2 * sizeof(std::uint32_t) + 2 * sizeof(std::int32_t);
  }
  static std::uint64_t fixed_bytes(const ScanKernel& scan, std::size_t dim, std::size_t degree) {
    return 2 * scan.base_width * bytes_per_member(scan, dim) +
           query_places(scan) *
               (encoded_row_bytes(scan, dim) + (capacity_of(degree, scan) + store_slack) * 8 + 8) +
           dim * sizeof(double) + degree * sizeof(std::uint32_t) + 1024;
  }

  void join(std::span<const std::uint32_t> members, std::size_t new_count, bool bipartite) {
    if (new_count == 0 || members.size() < (bipartite ? new_count + 1 : 2)) return;
    const auto new_members = members.first(new_count);
    const auto others = members.subspan(new_count);
    const std::size_t new_places = write_rows(new_members, 0);
    const std::size_t all_places = write_rows(others, new_places);
    compare(new_members, bipartite ? new_places : 0, all_places);
    compare(others, 0, new_places);
  }

  // Prefetches the vectors of a small group. Groups of scattered vectors are small.
  void prefetch_members(std::span<const std::uint32_t> members) const {
    if (members.size() > max_queries) return;
    for (const std::uint32_t place : members)
      prefetch(reinterpret_cast<std::uintptr_t>(rows_.encoded(place)),
               std::min<std::size_t>(rows_.row_bytes, 512));
  }

 private:
  // Fills panels with base vectors from local number `first` on; returns the number after the last panel.
  std::size_t write_rows(std::span<const std::uint32_t> members, std::size_t first) {
    const std::size_t width = scan_.base_width;
    const std::size_t end = first + round_up(members.size(), width);
    const bool integers = is_integer(scan_.base_encoding);
    for (std::size_t local = first; local < end; ++local) {
      const bool real = local - first < members.size();
      places_[local] = real ? members[local - first] : no_place;
      std::byte* const panel = base_panels_.data() + local / width * width * rows_.row_bytes;
      write_row(real ? rows_.encoded(places_[local]) : nullptr, panel, local % width, width,
                scan_.base_unit_bytes, 0);
      if (integers) {
        integer_biases_[local] =
            real ? rows_.integer_bias_of(places_[local]) : std::numeric_limits<std::int32_t>::max();
        half_biases_[local] = integer_biases_[local] >> 1;
      } else {
        biases_[local] = real ? rows_.bias(places_[local]) : std::numeric_limits<float>::infinity();
      }
    }
    return end;
  }

  // Writes one vector, or zeros, to its position in a panel.
  void write_row(const std::byte* row, std::byte* panel, std::size_t position, std::size_t width,
                 std::size_t unit_bytes, std::uint32_t flip) const {
    if (unit_bytes == 64) {
      for (std::size_t unit = 0; unit < rows_.row_bytes / 64; ++unit) {
        std::byte* const out = panel + (unit * width + position) * 64;
        if (row != nullptr)
          std::memcpy(out, row + unit * 64, 64);
        else
          std::memset(out, 0, 64);
      }
      return;
    }
    auto* const out = reinterpret_cast<std::uint32_t*>(panel) + position;
    for (std::size_t unit = 0; unit < rows_.row_bytes / 4; ++unit) {
      std::uint32_t value = 0;
      if (row != nullptr) std::memcpy(&value, row + unit * 4, 4);
      out[unit * width] = value ^ flip;
    }
  }

  // Compares the base vectors with local numbers [begin, end) with `queries` and updates their lists.
  void compare(std::span<const std::uint32_t> queries, std::size_t begin, std::size_t end) {
    for (std::size_t first = 0; first < queries.size(); first += max_queries) {
      queries_ = queries.subspan(first, std::min(max_queries, queries.size() - first));
      if (rows_.scores_hold())
        scan_queries(begin, end);
      else
        evaluate_queries(begin, end);
    }
  }

  void scan_queries(std::size_t begin, std::size_t end) {
    const std::size_t width = scan_.query_width;
    const std::size_t places = round_up(queries_.size(), width);
    // Queries may be encoded as base vectors with the highest bit of every byte flipped. The padding becomes
    // nonzero by that but is multiplied by zeros.
    const std::uint32_t flip = scan_.query_encoding == scan_.base_encoding ? 0 : 0x80808080U;
    for (std::size_t i = 0; i < places; ++i) {
      const bool real = i < queries_.size();
      std::byte* const panel = query_panels_.data() + i / width * width * rows_.row_bytes;
      write_row(real ? rows_.encoded(queries_[i]) : nullptr, panel, i % width, width, scan_.query_unit_bytes,
                flip);
      counts_[i] = 0;
      cutoffs_[i] = real ? rows_.cutoff(queries_[i]) : std::numeric_limits<float>::quiet_NaN();
    }
    // Blocks of base vectors that stay in cache for all queries.
    const std::size_t block =
        std::max<std::size_t>(1, scan_.base_step_bytes / (scan_.base_width * rows_.row_bytes)) *
        scan_.base_width;
    for (std::size_t first = begin; first < end; first += block)
      scan_block(places / width, first, std::min(block, end - first));
    for (std::size_t i = 0; i < queries_.size(); ++i) {
      if (counts_[i] == 0) continue;
      drop_excluded(i);
      offer(i);
    }
  }

  void scan_block(std::size_t query_panels, std::size_t first, std::size_t base_places) {
    cpu_.context.cancel.check();
    const bool integers = is_integer(scan_.base_encoding);
    scan_.scan(
        {.query_panels = query_panels_.data(),
         .query_panel_count = query_panels,
         .first_query = 0,
         .base_panels = base_panels_.data() + first * rows_.row_bytes,
         .biases = integers ? nullptr : biases_.data() + first,
         .integer_biases = integers ? integer_biases_.data() + first : nullptr,
         .half_biases = integers ? half_biases_.data() + first : nullptr,
         .base_panel_count = base_places / scan_.base_width,
         .first_row = static_cast<std::uint32_t>(first),
         .end_row = static_cast<std::uint32_t>(first + base_places),
         .row_bytes = rows_.row_bytes,
         .lists = {scores_.data(), locals_.data(), counts_.data(), cutoffs_.data(), stride_, capacity_},
         .make_room = [](void* owner, std::size_t query) { static_cast<Joiner*>(owner)->make_room(query); },
         .owner = this});
  }

  // For scores without an error bound: evaluates every pair.
  void evaluate_queries(std::size_t begin, std::size_t end) {
    for (std::size_t i = 0; i < queries_.size(); ++i) {
      cpu_.context.cancel.check();
      for (std::size_t first = begin; first < end; first += capacity_) {
        counts_[i] = static_cast<std::uint32_t>(std::min(capacity_, end - first));
        for (std::size_t j = 0; j < counts_[i]; ++j)
          locals_[i * stride_ + j] = static_cast<std::uint32_t>(first + j);
        offer(i);
      }
    }
  }

  // Drops candidates that enough others of the same scan exclude; one of these may be the query itself.
  void drop_excluded(std::size_t i) {
    float* const scores = scores_.data() + i * stride_;
    if (counts_[i] <= degree_ + 1) return;
    const float kth = cpu_.candidate_list.kth_score(scores, counts_[i], degree_ + 1);
    const Lengths& query = rows_.lengths(queries_[i]);
    const double limit = rows_.bound().limit_from_score(query, rows_.longest(), kth);
    cutoffs_[i] = std::min(cutoffs_[i], rows_.bound().cutoff(query, rows_.longest(), limit));
    counts_[i] = static_cast<std::uint32_t>(
        cpu_.candidate_list.keep_at_most(scores, locals_.data() + i * stride_, counts_[i], cutoffs_[i]));
  }

  void make_room(std::size_t i) {
    drop_excluded(i);
    if (counts_[i] > degree_ + 1 + (capacity_ - degree_ - 1 - scan_.base_width) / 2) offer(i);
  }

  // Evaluates the remaining candidates of query i and inserts them into its list.
  void offer(std::size_t i) {
    const std::uint32_t query = queries_[i];
    const std::lock_guard lock(rows_.mutex(query));
    const std::span<const NeighborEntry> entries = rows_.list(query);
    const NeighborEntry worst = entries.back();
    std::uint32_t found[batch];
    std::size_t count = 0;
    // Contiguous numbers, so that the comparison vectorizes.
    std::ranges::transform(entries, known_.data(), [](NeighborEntry entry) { return number_of(entry); });
    for (std::size_t j = 0; j < counts_[i]; ++j) {
      const std::uint32_t place = places_[locals_[i * stride_ + j]];
      if (place == no_place || place == query) continue;
      if (rows_.exact_scores()) {
        const float key = rows_.key_from_score(query, scores_[i * stride_ + j]);
        rows_.insert(query, make_entry(key, place, true));
        continue;
      }
      if (knows(place)) continue;
      prefetch(reinterpret_cast<std::uintptr_t>(rows_.args().rows.row(rows_.row_at(place))),
               prefetched_bytes_);
      found[count++] = place;
      if (count == batch) {
        evaluate(query, {found, count});
        count = 0;
      }
    }
    if (count != 0) evaluate(query, {found, count});
    counts_[i] = 0;
    if (entries.back() != worst) rows_.lower_cutoff(query);
    cutoffs_[i] = std::min(cutoffs_[i], rows_.cutoff(query));
  }

  bool knows(std::uint32_t place) const {
    std::uint32_t same = 0;
    for (std::size_t i = 0; i < degree_; ++i) same |= known_[i] == place ? 1U : 0U;
    return same != 0;
  }

  void evaluate(std::uint32_t query, std::span<const std::uint32_t> found) {
    const RowsView& rows = rows_.args().rows;
    const auto type = static_cast<std::size_t>(rows.type());
    const bool cosine = metric_ == Metric::cosine;
    const RowDistanceKernels& kernels = cpu_.row_distance;
    const auto function = is_euclidean(metric_) ? kernels.difference[type]
                          : cosine              ? kernels.product_and_norm[type]
                                                : kernels.product[type];
    row_to_double(rows, rows_.row_at(query), query_values_.data());
    std::uint32_t numbers[batch + 1];
    for (std::size_t i = 0; i < found.size(); ++i) numbers[i] = rows_.row_at(found[i]);
    // The query itself comes last, for its norm.
    numbers[found.size()] = rows_.row_at(query);
    double sums[batch + 1];
    double norms[batch + 1];
    function({.query = query_values_.data(),
              .base = rows.data(),
              .stride_bytes = rows.stride_bytes(),
              .dim = rows.dim(),
              .rows = numbers,
              .count = found.size() + (cosine ? 1 : 0),
              .sums = sums,
              .norms = norms});
    for (std::size_t i = 0; i < found.size(); ++i) {
      const float distance =
          reported(metric_, sums[i], cosine ? norms[found.size()] : 0, cosine ? norms[i] : 0);
      rows_.insert(query, make_entry(sort_key(metric_, distance), found[i], true));
    }
  }

  CpuStream& cpu_;
  JoinRows& rows_;
  const ScanKernel& scan_;
  const Metric metric_;
  const std::size_t degree_;
  const std::size_t prefetched_bytes_;  // prefetched per vector before evaluation
  const std::size_t base_places_;
  const std::size_t capacity_;
  const std::size_t stride_;
  // Base vectors of the group by local number.
  Buffer<std::uint32_t> places_;
  Buffer<std::byte> base_panels_;
  Buffer<float> biases_;
  Buffer<std::int32_t> integer_biases_;
  Buffer<std::int32_t> half_biases_;
  // Queries of the current scan.
  std::span<const std::uint32_t> queries_;
  Buffer<std::byte> query_panels_;
  Buffer<float> scores_;
  Buffer<std::uint32_t> locals_;
  Buffer<std::uint32_t> counts_;
  Buffer<float> cutoffs_;
  Buffer<std::uint32_t> known_;  // [degree] numbers in the current list
  Buffer<double> query_values_;
};

}  // namespace

JoinCosts join_costs(const Stream& stream, const KnnCostsArgs& args) {
  const CpuStream& cpu = cpu_stream(stream);
  const ScanKernel scan = choose_scan(cpu.set, args.metric, args.base_type, args.base_type, args.dim);
  const auto threads = static_cast<std::uint64_t>(cpu.threads().count());
  return {.bytes_per_row = JoinRows::bytes_per_row(scan, args.dim),
          .bytes_per_member = threads * Joiner::bytes_per_member(scan, args.dim),
          .fixed_bytes =
              threads * (Joiner::fixed_bytes(scan, args.dim, args.k) +
                         buffer_bytes(pack_scratch_bytes(args.dim, encoded_row_bytes(scan, args.dim)), 1)) +
              1024};
}

void join_groups(Stream& stream, const JoinGroupsArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  auto& rows = static_cast<JoinRows&>(args.state);
  const Groups& groups = args.groups;
  if (groups.size() == 0) return;
  std::size_t max_members = 0;
  std::vector<std::size_t> tasks;  // first group of each
  for (std::size_t group = 0; group < groups.size(); ++group) {
    max_members = std::max(max_members, groups.of(group).size());
    if (tasks.empty() || groups.ends[group] - groups.begin(tasks.back()) > task_members)
      tasks.push_back(group);
  }
  tasks.push_back(groups.size());
  cpu.threads().for_each(tasks.size() - 1, [&](std::size_t task) {
    Joiner joiner(cpu, rows, max_members);
    for (std::size_t group = tasks[task]; group < tasks[task + 1]; ++group) {
      if (group + 1 < tasks[task + 1]) joiner.prefetch_members(groups.of(group + 1));
      joiner.join(groups.of(group), groups.new_counts[group], groups.bipartite);
    }
    if (args.progress != nullptr)
      args.progress->add(groups.begin(tasks[task + 1]) - groups.begin(tasks[task]));
  });
}

}  // namespace nearwise::cpu

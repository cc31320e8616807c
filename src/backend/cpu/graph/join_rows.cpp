#include "backend/cpu/graph/join_rows.h"

#include <algorithm>
#include <limits>

#include "backend/cpu/operations.h"
#include "backend/cpu/rows/choose_scan.h"
#include "core/checked.h"
#include "core/distance.h"

namespace nearwise::cpu {
namespace {

constexpr std::size_t task_rows = 1024;

// Integers up to this, and their halves, are exact in f32.
constexpr double max_exact = 0x1p24;

}  // namespace

JoinRows::JoinRows(CpuStream& cpu, const ScanKernel& kernel, const StartJoinArgs& args)
    : scan(kernel),
      row_bytes(encoded_row_bytes(kernel, args.rows.dim())),
      args_(args),
      bound_(args.metric, products_of(kernel.base_encoding), args.rows.dim()),
      encoded_(cpu.budget(), checked_multiply(args.rows.rows(), row_bytes, "start_join")),
      biases_(cpu.budget(), is_integer(kernel.base_encoding) ? 0 : args.rows.rows()),
      integer_biases_(cpu.budget(), is_integer(kernel.base_encoding) ? args.rows.rows() : 0),
      lengths_(cpu.budget(), args.rows.rows()),
      cutoffs_(cpu.budget(), args.rows.rows()) {
  std::ranges::fill(cutoffs_.span(), std::numeric_limits<float>::max());
  cpu.threads().for_each(divide_up(args.rows.rows(), task_rows), [&](std::size_t task) {
    cpu.context.cancel.check();
    encode(cpu, task * task_rows, std::min(args.rows.rows(), (task + 1) * task_rows));
  });
  // 2 * score = bias - 2 * product; the bias may include the compensation of flipped bytes.
  const double flipped =
      scan.query_encoding == scan.base_encoding ? 0 : 256.0 * 255 * static_cast<double>(args.rows.dim());
  exact_scores_ = is_integer(scan.base_encoding) && 3 * longest_.norm * longest_.norm + flipped <= max_exact;
  if (!args.has_neighbors) return;
  cpu.threads().for_each(divide_up(args.rows.rows(), task_rows), [&](std::size_t task) {
    const std::size_t end = std::min(args.rows.rows(), (task + 1) * task_rows);
    for (std::size_t place = task * task_rows; place < end; ++place)
      lower_cutoff(static_cast<std::uint32_t>(place));
  });
}

std::uint64_t JoinRows::bytes_per_row(const ScanKernel& scan, std::size_t dim) {
  return encoded_row_bytes(scan, dim) + sizeof(float) + sizeof(Lengths) + sizeof(float);
}

void JoinRows::encode(CpuStream& cpu, std::size_t first, std::size_t end) {
  const std::size_t dim = args_.rows.dim();
  const bool integers = is_integer(scan.base_encoding);
  const auto pack =
      cpu.pack_rows
          .pack[static_cast<std::size_t>(scan.base_encoding)][static_cast<std::size_t>(args_.rows.type())];
  Buffer<std::byte> scratch(cpu.budget(), pack_scratch_bytes(dim, row_bytes));
  Lengths longest;
  for (std::size_t place = first; place < end; ++place) {
    PackedRow measured;
    // Panels of width 1: row-major order.
    const std::size_t good = pack({.rows = args_.rows.row(args_.order[place]),
                                   .stride_bytes = args_.rows.stride_bytes(),
                                   .count = 1,
                                   .dim = dim,
                                   .width = 1,
                                   .unit_bytes = scan.base_unit_bytes,
                                   .row_bytes = row_bytes,
                                   .centre = args_.centre.empty() || integers ? nullptr : args_.centre.data(),
                                   .normalise = args_.metric == Metric::cosine,
                                   .precise = true,
                                   .panel = encoded_.data() + place * row_bytes,
                                   .packed = &measured,
                                   .scratch = scratch.data()});
    if (good != 1) refuse_row(RowsRole::base, args_.order[place]);
    lengths_[place] = {measured.norm, measured.residual};
    longest = longer(longest, lengths_[place]);
    if (integers)
      integer_biases_[place] = integer_bias(measured, args_.metric, scan, args_.rows.type());
    else
      biases_[place] = is_euclidean(args_.metric) ? static_cast<float>(measured.norm * measured.norm / 2) : 0;
  }
  const std::lock_guard lock(longest_mutex_);
  longest_ = longer(longest_, longest);
}

float JoinRows::key_from_score(std::uint32_t place, float score) const {
  // Squared norms of integer vectors are integers below 2^24: rounding recovers them.
  const double norm = lengths_[place].norm;
  const double sum =
      is_euclidean(args_.metric) ? std::nearbyint(norm * norm) + 2 * static_cast<double>(score) : -score;
  return sort_key(args_.metric, reported(args_.metric, sum, 0, 0));
}

void JoinRows::insert(std::uint32_t place, NeighborEntry entry) const {
  const std::span<NeighborEntry> entries = list(place);
  if (entry >= entries.back()) return;
  std::size_t at = entries.size() - 1;
  while (at > 0 && as_old(entries[at - 1]) > as_old(entry)) --at;
  // A pair always has the same key, so an equal entry is a duplicate.
  if (at > 0 && as_old(entries[at - 1]) == as_old(entry)) return;
  std::copy_backward(entries.begin() + static_cast<std::ptrdiff_t>(at), entries.end() - 1, entries.end());
  entries[at] = entry;
}

void JoinRows::lower_cutoff(std::uint32_t place) const {
  const NeighborEntry worst = list(place).back();
  if (worst == empty_entry) return;
  const float cutoff = bound_.cutoff(lengths_[place], longest_, bound_.limit_from_key(key_of(worst)));
  std::atomic_ref(cutoffs_[place]).store(cutoff, std::memory_order_relaxed);
}

std::unique_ptr<JoinState> start_join(Stream& stream, const StartJoinArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const ScanKernel scan = choose_scan(cpu.set, args.metric, args.type, args.type, args.rows.dim());
  return std::make_unique<JoinRows>(cpu, scan, args);
}

}  // namespace nearwise::cpu

// Robust pruning of candidate edges (Subramanya et al., "DiskANN"), with rising alpha.
//
// All decisions are comparisons of integers, so that the edges do not depend on threads or instruction sets.
#include <algorithm>
#include <array>
#include <atomic>
#include <compare>
#include <cstring>
#include <limits>

#include "backend/cpu/kernels/prefetch.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/stream.h"
#include "core/checked.h"
#include "core/memory.h"
#include "core/progress.h"

namespace nearwise::cpu {
namespace {

constexpr std::size_t task_rows = 512;
// Nearest candidates that are considered. A hub of the graph may be in thousands of lists.
constexpr std::size_t max_candidates = 256;

// alpha^2 = numerator / denominator for alpha 1, 1.1 and 1.2. With 1.2 from the beginning, lists lose their
// long edges, and rows cannot be reached.
constexpr std::array<std::uint64_t, 3> numerators = {100, 121, 144};
constexpr std::uint64_t denominator = 100;

struct Candidate {
  std::uint32_t distance;  // to the row
  std::uint32_t row;
  friend auto operator<=>(const Candidate&, const Candidate&) = default;
};

// Not thread-safe.
class Pruner {
 public:
  Pruner(const CpuStream& cpu, const PruneEdgesArgs& args)
      : kernels_(cpu.code_distances),
        args_(args),
        row_bytes_(args.codes.cols()),
        degree_(args.edges.cols()),
        capacity_(most_candidates(args)),
        rows_(cpu.budget(), capacity_ + code_overrun),
        distances_(cpu.budget(), capacity_ + code_overrun),
        candidates_(cpu.budget(), capacity_),
        nearest_kept_(cpu.budget(), max_candidates),
        compared_(cpu.budget(), max_candidates),
        is_kept_(cpu.budget(), max_candidates),
        query_(cpu.budget(), row_bytes_),
        kept_codes_(cpu.budget(), degree_ * row_bytes_),
        kept_rows_(cpu.budget(), degree_ + code_overrun) {
    for (std::size_t i = 0; i < kept_rows_.size(); ++i) kept_rows_[i] = static_cast<std::uint32_t>(i);
  }

  void prune(std::size_t place) {
    const std::span<std::int32_t> edges = args_.edges.row(place);
    const std::size_t count = collect(place, args_.rows ? (*args_.rows)[place] : place);
    const std::size_t kept = args_.keep_short_lists && count <= degree_ ? keep_all(count) : choose(count);
    std::size_t written = 0;
    for (std::size_t i = 0; written < kept; ++i)
      if (is_kept_[i] != 0) edges[written++] = static_cast<std::int32_t>(candidates_[i].row);
    std::fill(edges.begin() + static_cast<std::ptrdiff_t>(kept), edges.end(), no_edge);
  }

 private:
  static std::size_t most_candidates(const PruneEdgesArgs& args) {
    std::uint64_t most = 0;
    for (std::size_t row = 0; row + 1 < args.offsets.size(); ++row)
      most = std::max(most, args.offsets[row + 1] - args.offsets[row]);
    return std::max<std::size_t>(args.lists.cols() + most, max_candidates);
  }

  const std::uint8_t* code_of(std::size_t row) const { return args_.codes.row(row).data(); }

  // The nearest candidates in order, without repetitions and the row itself; returns their number.
  std::size_t collect(std::size_t place, std::size_t row) {
    std::size_t count = 0;
    for (const std::int32_t other : args_.lists.row(place)) {
      if (other == no_edge) break;
      rows_[count++] = static_cast<std::uint32_t>(other);
    }
    if (!args_.offsets.empty())
      for (std::uint64_t i = args_.offsets[place]; i < args_.offsets[place + 1]; ++i)
        rows_[count++] = args_.others[i];
    std::uint32_t* const begin = rows_.data();
    std::sort(begin, begin + count);
    std::uint32_t* end = std::unique(begin, begin + count);
    end = std::remove(begin, end, static_cast<std::uint32_t>(row));
    count = static_cast<std::size_t>(end - begin);
    for (std::size_t i = 0; i < count; ++i) prefetch_code(rows_[i]);
    kernels_.widen(code_of(row), row_bytes_, query_.data());
    measure(args_.codes.data(), rows_.data(), count);
    for (std::size_t i = 0; i < count; ++i)
      candidates_[i] = {static_cast<std::uint32_t>(distances_[i]), rows_[i]};
    const std::size_t used = std::min(count, max_candidates);
    std::partial_sort(candidates_.data(), candidates_.data() + used, candidates_.data() + count);
    return used;
  }

  std::size_t keep_all(std::size_t count) {
    std::fill_n(is_kept_.data(), count, 1U);
    return count;
  }

  // Marks the kept ones of the first `count` candidates; returns their number.
  std::size_t choose(std::size_t count) {
    std::fill_n(is_kept_.data(), count, 0U);
    std::fill_n(compared_.data(), count, 0U);
    std::fill_n(nearest_kept_.data(), count, std::numeric_limits<std::uint32_t>::max());
    std::size_t kept = 0;
    for (const std::uint64_t numerator : numerators)
      for (std::size_t i = 0; i < count && kept < degree_; ++i) {
        if (is_kept_[i] != 0 || is_covered(i, numerator)) continue;
        if (compared_[i] < kept && compare(i, kept, numerator)) continue;
        std::memcpy(kept_codes_.data() + kept * row_bytes_, code_of(candidates_[i].row), row_bytes_);
        is_kept_[i] = 1;
        ++kept;
      }
    return kept;
  }

  // Whether a kept row is nearer to the candidate, by alpha, than the row that is pruned.
  bool is_covered(std::size_t i, std::uint64_t numerator) const {
    return numerator * nearest_kept_[i] <= denominator * candidates_[i].distance;
  }

  // Compares the candidate with the kept rows that it has not been compared with, until one covers it.
  bool compare(std::size_t i, std::size_t kept, std::uint64_t numerator) {
    constexpr std::size_t group = 4;
    const Candidate& candidate = candidates_[i];
    kernels_.widen(code_of(candidate.row), row_bytes_, query_.data());
    while (compared_[i] < kept) {
      const std::size_t first = compared_[i];
      const std::size_t count = std::min(group, kept - first);
      measure(kept_codes_.data(), kept_rows_.data() + first, count);
      for (std::size_t j = 0; j < count; ++j)
        nearest_kept_[i] = std::min(nearest_kept_[i], static_cast<std::uint32_t>(distances_[j]));
      compared_[i] = static_cast<std::uint32_t>(first + count);
      if (is_covered(i, numerator)) return true;
    }
    return false;
  }

  void measure(const std::uint8_t* codes, const std::uint32_t* rows, std::size_t count) {
    kernels_.bytes({.query = query_.data(),
                    .codes = codes,
                    .row_bytes = row_bytes_,
                    .rows = rows,
                    .count = count,
                    .distances = distances_.data()});
  }

  void prefetch_code(std::size_t row) const {
    prefetch(reinterpret_cast<std::uintptr_t>(code_of(row)), std::min<std::size_t>(row_bytes_, 512));
  }

  const CodeDistanceKernels& kernels_;
  const PruneEdgesArgs& args_;
  const std::size_t row_bytes_;
  const std::size_t degree_;
  const std::size_t capacity_;
  Buffer<std::uint32_t> rows_;  // candidates in any order
  Buffer<std::int32_t> distances_;
  Buffer<Candidate> candidates_;
  Buffer<std::uint32_t> nearest_kept_;  // of each candidate: its distance to the nearest kept row
  Buffer<std::uint32_t> compared_;      // kept rows that it was compared with
  Buffer<std::uint32_t> is_kept_;
  Buffer<std::int16_t> query_;
  Buffer<std::uint8_t> kept_codes_;  // [degree, row_bytes] copies, read again and again
  Buffer<std::uint32_t> kept_rows_;  // 0, 1, ...
};

}  // namespace

void prune_edges(Stream& stream, const PruneEdgesArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const std::size_t rows = args.rows ? args.rows->size() : args.codes.rows();
  const std::size_t tasks = divide_up(rows, task_rows);
  const std::size_t workers = std::min<std::size_t>(tasks, static_cast<std::size_t>(cpu.threads().count()));
  std::atomic<std::size_t> next = 0;
  cpu.threads().for_each(workers, [&](std::size_t) {
    Pruner pruner(cpu, args);
    for (std::size_t task = next++; task < tasks; task = next++) {
      cpu.context.cancel.check();
      const std::size_t end = std::min(rows, (task + 1) * task_rows);
      for (std::size_t place = task * task_rows; place < end; ++place) pruner.prune(place);
      if (args.progress != nullptr) args.progress->add(end - task * task_rows);
    }
  });
}

}  // namespace nearwise::cpu

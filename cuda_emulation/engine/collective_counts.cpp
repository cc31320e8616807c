#include "cuda_emulation/engine/collective_counts.h"

#include <algorithm>
#include <tuple>

namespace cuda_emulation {
namespace {

struct LineCount {
  const char* file;
  int line;
  Collective collective;
  std::uint64_t times;
  std::uint64_t not_zero;
};

// Linear search: a kernel has few lines with collectives and repeats them, so the latest is kept in front.
std::vector<LineCount> lines;

}  // namespace

void count_collective(const Thread& thread) {
  auto found = std::find_if(lines.begin(), lines.end(), [&](const LineCount& count) {
    return count.line == thread.line && count.collective == thread.collective && count.file == thread.file;
  });
  if (found == lines.end())
    found = lines.insert(lines.end(), {thread.file, thread.line, thread.collective, 0, 0});
  ++found->times;
  found->not_zero += thread.result != 0;
  std::iter_swap(found, lines.begin());
}

std::vector<CollectiveCount> collective_counts() {
  // The name of a header is a different constant in every file that includes it.
  std::vector<CollectiveCount> merged;
  for (const LineCount& count : lines) {
    const auto found = std::find_if(merged.begin(), merged.end(), [&](const CollectiveCount& other) {
      return std::tuple(std::string_view(other.file), other.line, other.collective) ==
             std::tuple(std::string_view(count.file), count.line, count.collective);
    });
    if (found == merged.end()) {
      merged.push_back({count.collective, count.file, count.line, count.times, count.not_zero});
    } else {
      found->times += count.times;
      found->not_zero += count.not_zero;
    }
  }
  std::sort(merged.begin(), merged.end(), [](const CollectiveCount& left, const CollectiveCount& right) {
    return std::tie(left.file, left.line, left.collective) <
           std::tie(right.file, right.line, right.collective);
  });
  return merged;
}

void reset_collective_counts() { lines.clear(); }

}  // namespace cuda_emulation

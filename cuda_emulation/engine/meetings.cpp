#include "cuda_emulation/engine/meetings.h"

#include <algorithm>
#include <tuple>

namespace cuda_emulation {
namespace {

struct Counted {
  const char* file;
  int line;
  Collective collective;
  std::uint64_t times;
  std::uint64_t not_zero;
};

// Short: a kernel has a few such lines, and meets at one of them again and again. The latest is in front.
std::vector<Counted> lines;

}  // namespace

void count_meeting(const Thread& thread) {
  auto found = std::find_if(lines.begin(), lines.end(), [&](const Counted& counted) {
    return counted.line == thread.line && counted.collective == thread.collective &&
           counted.file == thread.file;
  });
  if (found == lines.end())
    found = lines.insert(lines.end(), {thread.file, thread.line, thread.collective, 0, 0});
  ++found->times;
  found->not_zero += thread.result != 0;
  std::iter_swap(found, lines.begin());
}

std::vector<Meeting> meetings() {
  // A header's name is another constant in every file that includes it.
  std::vector<Meeting> together;
  for (const Counted& counted : lines) {
    const auto found = std::find_if(together.begin(), together.end(), [&](const Meeting& meeting) {
      return std::tuple(std::string_view(meeting.file), meeting.line, meeting.collective) ==
             std::tuple(std::string_view(counted.file), counted.line, counted.collective);
    });
    if (found == together.end()) {
      together.push_back({counted.collective, counted.file, counted.line, counted.times, counted.not_zero});
    } else {
      found->times += counted.times;
      found->not_zero += counted.not_zero;
    }
  }
  std::sort(together.begin(), together.end(), [](const Meeting& left, const Meeting& right) {
    return std::tie(left.file, left.line, left.collective) <
           std::tie(right.file, right.line, right.collective);
  });
  return together;
}

void forget_meetings() { lines.clear(); }

}  // namespace cuda_emulation

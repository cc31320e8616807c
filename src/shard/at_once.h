// Runs work of several members of an index concurrently, each in its own context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "nearwise/sharded.h"

namespace nearwise::shard {

struct Work {
  const char* operation = "";
  // Progress units of each member, to which its own progress is scaled.
  std::vector<std::uint64_t> units;
  std::function<void(std::size_t member, const Context& context)> run;
};

// Runs the work of every member with any units on a thread of its own. Progress of all of them is reported to
// `context`, and cancelling it cancels them. An error cancels the others (a wrong argument those of higher
// number); the one that reaches the caller is the failed member's of lowest number, and names its device.
void run_at_once(const Context& context, std::span<const Member> members, const Work& work);

}  // namespace nearwise::shard

// Which shards are merged in which round: a round-robin tournament (circle method).
//
// Every two shards are paired once, and each shard is in at most one pair per round, so that the pairs of a
// round can run concurrently. With an odd number of shards one rests in each round.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace nearwise::plan {

struct Pairing {
  std::size_t left = 0;  // the lower number
  std::size_t right = 0;

  bool operator==(const Pairing&) const = default;
};

class PairSchedule {
 public:
  explicit PairSchedule(std::size_t parts) : parts_(parts) {}

  std::size_t rounds() const { return parts_ <= 1 ? 0 : seats() - 1; }
  std::vector<Pairing> pairs(std::size_t round) const;
  // The last pair of a part before a round; nullopt before its first. round may be rounds().
  std::optional<Pairing> before(std::size_t part, std::size_t round) const;

 private:
  std::size_t seats() const { return parts_ + parts_ % 2; }
  std::optional<Pairing> of(std::size_t part, std::size_t round) const;

  std::size_t parts_;
};

}  // namespace nearwise::plan

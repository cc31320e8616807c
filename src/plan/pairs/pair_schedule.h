// Who meets whom, and when: a tournament in which every part meets every other once (the circle method).
//
// In each round a part is in one meeting at the most, so that those of a round can be held at once. Where their number is odd, a
// part rests in each round.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace nearwise::plan {

struct Pairing {
  std::size_t left = 0;  // the lower one
  std::size_t right = 0;

  bool operator==(const Pairing&) const = default;
};

class PairSchedule {
 public:
  explicit PairSchedule(std::size_t parts) : parts_(parts) {}

  std::size_t rounds() const { return parts_ <= 1 ? 0 : seats() - 1; }
  std::vector<Pairing> pairs(std::size_t round) const;
  // The last meeting of a part before a round: none, where it has had none. rounds(): its last of all.
  std::optional<Pairing> before(std::size_t part, std::size_t round) const;

 private:
  std::size_t seats() const { return parts_ + parts_ % 2; }
  std::optional<Pairing> of(std::size_t part, std::size_t round) const;

  std::size_t parts_;
};

}  // namespace nearwise::plan

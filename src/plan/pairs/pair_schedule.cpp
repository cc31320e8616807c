#include "plan/pairs/pair_schedule.h"

#include <algorithm>

namespace nearwise::plan {

// Those on the circle whose sum is the round, modulo the places of the circle, meet; he who would meet himself meets the
// last, who sits in the middle.
std::optional<Pairing> PairSchedule::of(std::size_t part, std::size_t round) const {
  const std::size_t circle = seats() - 1;
  std::size_t other = 0;
  if (part == circle) {
    // Twice the other is the round: an odd circle has one such place.
    other = round % 2 == 0 ? round / 2 : (round + circle) / 2;
  } else {
    other = (round + circle - part) % circle;
    if (other == part) other = circle;
  }
  if (other >= parts_) return std::nullopt;
  return Pairing{.left = std::min(part, other), .right = std::max(part, other)};
}

std::vector<Pairing> PairSchedule::pairs(std::size_t round) const {
  std::vector<Pairing> all;
  for (std::size_t part = 0; part < parts_; ++part)
    if (const auto pairing = of(part, round); pairing && pairing->left == part) all.push_back(*pairing);
  return all;
}

std::optional<Pairing> PairSchedule::before(std::size_t part, std::size_t round) const {
  while (round-- > 0)
    if (const auto pairing = of(part, round)) return pairing;
  return std::nullopt;
}

}  // namespace nearwise::plan

#include "plan/pairs/pair_schedule.h"

#include <algorithm>

namespace nearwise::plan {

// Circle method: parts whose sum is the round, modulo the circle's size, are paired; the part that would be
// paired with itself is paired with the last one.
std::optional<Pairing> PairSchedule::of(std::size_t part, std::size_t round) const {
  const std::size_t circle = seats() - 1;
  std::size_t other = 0;
  if (part == circle) {
    // The partner of the last part satisfies 2 * partner = round; a circle of odd size has one.
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

// The decisions of a simulation: a sequence of random numbers that depends on the seed alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/math/random.h"

namespace nearwise::plan::simulation {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}

  std::uint64_t bits() { return random_.bits(next_++); }
  // Uniform in [0, bound).
  std::size_t below(std::size_t bound) { return random_.below(next_++, bound); }
  bool one_in(std::size_t count) { return below(count) == 0; }
  template <typename Container>
  auto& any_of(Container& container) {
    return container[below(container.size())];
  }

 private:
  const Random random_;
  std::uint64_t next_ = 0;
};

}  // namespace nearwise::plan::simulation

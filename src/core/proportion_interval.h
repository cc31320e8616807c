// How far the mean of a sample may be from that of all.
#pragma once

#include <cstddef>

namespace nearwise {

struct ProportionInterval {
  double low = 0;
  double high = 1;
};

// Wilson's interval of 95 % for the mean of numbers in [0, 1], as many trials as their spread is worth.
ProportionInterval proportion_interval(double mean, double variance, std::size_t count);

}  // namespace nearwise

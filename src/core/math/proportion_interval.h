// Confidence interval of a proportion estimated from a sample.
#pragma once

#include <cstddef>

namespace nearwise {

struct ProportionInterval {
  double low = 0;
  double high = 1;
};

// Wilson's 95 % interval for the mean of `count` numbers in [0, 1], with the number of trials adjusted to
// their variance.
ProportionInterval proportion_interval(double mean, double variance, std::size_t count);

}  // namespace nearwise

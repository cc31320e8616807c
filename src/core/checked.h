// Size arithmetic that refuses to wrap. Every size that comes from a file or a caller goes through here.
#pragma once

#include <concepts>
#include <limits>

#include "core/check.h"

namespace nearwise {

// The product or sum, or Error(code) naming `what` if it does not fit.
template <std::unsigned_integral T>
T checked_multiply(T left, T right, const char* what, ErrorCode code = ErrorCode::invalid_argument) {
  T product;
  if (__builtin_mul_overflow(left, right, &product))
    fail(code, "{}: {} * {} does not fit in {} bits", what, left, right, std::numeric_limits<T>::digits);
  return product;
}

template <std::unsigned_integral T>
T checked_add(T left, T right, const char* what, ErrorCode code = ErrorCode::invalid_argument) {
  T sum;
  if (__builtin_add_overflow(left, right, &sum))
    fail(code, "{}: {} + {} does not fit in {} bits", what, left, right, std::numeric_limits<T>::digits);
  return sum;
}

// The product, or `most` where it is larger.
template <std::unsigned_integral T>
constexpr T bounded_product(T left, T right, T most) {
  T product = 0;
  return __builtin_mul_overflow(left, right, &product) || product > most ? most : product;
}

template <std::unsigned_integral T>
constexpr T divide_up(T numerator, T denominator) {
  return numerator / denominator + (numerator % denominator != 0);
}

template <std::unsigned_integral T>
constexpr T round_up(T value, T multiple) {
  return divide_up(value, multiple) * multiple;
}

}  // namespace nearwise

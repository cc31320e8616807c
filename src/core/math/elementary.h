// Elementary functions that give the same bits on every machine, unlike those of a C library: nothing but f64
// operations that IEEE 754 defines. Errors are below one unit in the last place.
#pragma once

namespace nearwise {

// x: positive and finite.
double natural_logarithm(double x) noexcept;

// The cosine of 2 pi turns; turns: 0 to 1.
double cosine_of_turns(double turns) noexcept;

}  // namespace nearwise

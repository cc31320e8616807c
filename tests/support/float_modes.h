// Floating-point modes that a caller's process may be in: scopes that switch them on in the calling thread.
#pragma once

#include <cfenv>

#if defined(__SSE2__)
#include <pmmintrin.h>
#include <xmmintrin.h>
#endif

namespace nearwise::support {

// Denormals flushed to zero, inputs and results, as any library built with -ffast-math leaves the process.
class FlushDenormals {
 public:
#if defined(__SSE2__)
  static constexpr bool available = true;
  FlushDenormals() : saved_(_mm_getcsr()) {
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
  }
  ~FlushDenormals() { _mm_setcsr(saved_); }
  static bool is_on() {
    return _MM_GET_FLUSH_ZERO_MODE() == _MM_FLUSH_ZERO_ON &&
           _MM_GET_DENORMALS_ZERO_MODE() == _MM_DENORMALS_ZERO_ON;
  }

 private:
  unsigned saved_;

 public:
#else
  static constexpr bool available = false;
  FlushDenormals() = default;
  static bool is_on() { return false; }
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;
};

class RoundingMode {
 public:
  explicit RoundingMode(int mode) : saved_(std::fegetround()) { std::fesetround(mode); }
  ~RoundingMode() { std::fesetround(saved_); }
  RoundingMode(const RoundingMode&) = delete;
  RoundingMode& operator=(const RoundingMode&) = delete;

 private:
  int saved_;
};

}  // namespace nearwise::support

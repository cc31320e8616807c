// Operations accept memory of the host or of the device they run on.
#pragma once

#include "core/check.h"
#include "nearwise/context.h"

namespace nearwise {

// Throws Error(invalid_argument) otherwise. Memory of another device is never copied silently.
inline void check_place(const char* operation, const Context& context, Place place, const char* what) {
  require(place.kind == DeviceKind::cpu || place == context.place(),
          "{}: the {} are on {} and the work is on {}; they must be on the host or where the work is",
          operation, what, name(place), name(context.place()));
}

}  // namespace nearwise

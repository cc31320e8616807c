#pragma once

#include "backend/plugin/plugin.h"

namespace nearwise {

// Before any function of the library is called.
void set_base_functions(const BaseFunctions& functions);

}  // namespace nearwise

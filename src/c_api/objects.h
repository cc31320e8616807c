// What the handles of the C interface are.
#pragma once

#include <variant>

#include "nearwise/context.h"
#include "nearwise/graph_index.h"
#include "nearwise/ivf.h"

// The names are those of C. NOLINTBEGIN(readability-identifier-naming)
struct nearwise_context {
  nearwise::Context context;
};

struct nearwise_index {
  std::variant<nearwise::Ivf, nearwise::GraphIndex> index;
};
// NOLINTEND(readability-identifier-naming)

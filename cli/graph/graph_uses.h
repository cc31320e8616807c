// The commands of `nearwise graph` that use a graph: path, components, duplicates, export.
#pragma once

#include "cli/shared/session.h"

namespace nearwise::cli {

void add_uses_of_graph(CLI::App& graph, Session& session);

}  // namespace nearwise::cli

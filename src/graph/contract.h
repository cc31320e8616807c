// The contract of a graph's rows, checked by all threads of a context.
#pragma once

#include "nearwise/knn_graph.h"

namespace nearwise::graph {

// As KnnGraph::validate.
void check_contract(const Context& context, const KnnGraph& graph);

}  // namespace nearwise::graph

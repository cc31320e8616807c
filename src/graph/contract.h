// Checks the contract of KnnGraph on all threads.
#pragma once

#include "nearwise/graph/knn_graph.h"

namespace nearwise::graph {

// As KnnGraph::validate.
void check_contract(const Context& context, const KnnGraph& graph);

}  // namespace nearwise::graph

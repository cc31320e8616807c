// The graph of given vectors, for new indexes and for those that are built anew.
#pragma once

#include <memory>

#include "graph_index/searched_graph.h"
#include "nearwise/context.h"
#include "nearwise/graph_index.h"
#include "nearwise/matrix.h"

namespace nearwise::graph_index {

// Rows are in ascending order of their ids. budget: of the memory that the graph keeps.
SearchedGraph build_graph(const char* operation, const Context& context,
                          const std::shared_ptr<MemoryBudget>& budget, const RowsView& source,
                          const GraphIndexOptions& options);

// Throws Error(invalid_argument) for what no content of the rows could make right.
void check_graph_options(const char* operation, const RowsView& rows, const GraphIndexOptions& options);
// The index of a graph: prepared for searches, with the provenance of a build, and calibrated on its vectors
// if it has two or more.
GraphIndex index_of_graph(const Context& context, SearchedGraph graph,
                          const GraphCalibrationOptions& calibration);

}  // namespace nearwise::graph_index

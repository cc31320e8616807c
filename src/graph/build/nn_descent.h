// The loop from a first step to the target recall, shared by graph builds and changes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "graph/build/builder.h"
#include "nearwise/graph/knn_graph.h"

namespace nearwise::graph {

// Replaces the first comparison within partitions if lists start with neighbours.
using FirstStep = std::function<void(Builder&, const Context&)>;

// Throws Error(invalid_argument) in the name of `operation`.
void check_arguments(const char* operation, const Context& context, const RowsView& rows,
                     const KnnGraphOptions& options);

// Upper bound on what build_knn_graph() takes of a budget, including the result.
std::uint64_t building_bytes(const Context& context, const RowsView& rows, const KnnGraphOptions& options);

// By exact search. rounds: of earlier approximate attempts, for the report.
KnnGraph exact_graph(const Context& context, const RowsView& rows, const KnnGraphOptions& options,
                     std::vector<GraphRound> rounds = {});

// First step (or partitions), NN-Descent iterations, then other partitions, until the target recall is
// reached; exact search if nothing else reaches it.
KnnGraph run_nn_descent(const char* operation, const Context& context, const RowsView& rows,
                        const KnnGraphOptions& options, const Tuning& tuning, const FirstStep& first = {});

}  // namespace nearwise::graph

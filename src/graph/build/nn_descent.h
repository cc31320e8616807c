// From a first step to the recall that was asked for: what building a graph and changing one share.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "graph/build/builder.h"
#include "nearwise/knn_graph.h"

namespace nearwise::graph {

// Takes the place of the first partitions: for lists that hold neighbours already.
using FirstStep = std::function<void(Builder&)>;

// Rows on the host, not too many, and a recall and degree that can be. Throws in the name of `operation`.
void check_arguments(const char* operation, const Context& context, const RowsView& rows,
                     const KnnGraphOptions& options);

// By all pairs. rounds: those that came before.
KnnGraph exact_graph(const Context& context, const RowsView& rows, const KnnGraphOptions& options,
                     std::vector<GraphRound> rounds = {});

// First step or partitions, rounds of descent and other partitions until the recall is there; exact search where nothing else gets
// there.
KnnGraph run_nn_descent(const char* operation, const Context& context, const RowsView& rows,
                        const KnnGraphOptions& options, const Tuning& tuning, const FirstStep& first = {});

}  // namespace nearwise::graph

// Saves graphs as CSR matrices for SciPy.
//
// Writes the .npz format of scipy.sparse.save_npz, uncompressed: indptr, indices (32 bits if they suffice),
// data (f32), shape and format. Entry (i, j) is the distance from row i to its neighbour j; zero distances
// are stored. Entries of a row keep the graph's order, best first. The file is written atomically, and the
// same graph gives the same bytes.
#pragma once

#include <cstddef>
#include <filesystem>

#include "nearwise/exact.h"
#include "nearwise/export.h"
#include "nearwise/graph/knn_graph.h"

namespace NEARWISE_EXPORT nearwise {

// Throws Error(invalid_argument) unless the name ends in .npz and all ids are rows of the graph.
void save_csr(const KnnGraph& graph, const std::filesystem::path& path);

// For rows of different lengths, as from mutual_neighbors. columns: all ids are below it.
void save_csr(const RangeNeighbors& neighbors, std::size_t columns, const std::filesystem::path& path);

}  // namespace nearwise

// Graphs for other programs: a sparse matrix in compressed rows (CSR), as SciPy keeps it.
//
// An .npz as scipy.sparse.save_npz writes it, not compressed: indptr, indices (32 bits where they do), data (f32), shape and
// format. Entry (i, j) is the distance from row i to its neighbour j; distances of 0 are entries as well. Entries of a row are in
// the order of the graph, best first. The file appears complete or not at all, and the same graph gives the same bytes.
#pragma once

#include <cstddef>
#include <filesystem>

#include "nearwise/exact.h"
#include "nearwise/knn_graph.h"

namespace nearwise {

// Throws Error(invalid_argument) for a name that does not end in .npz, and for neighbours that are no rows of the graph.
void save_csr(const KnnGraph& graph, const std::filesystem::path& path);

// Rows of different lengths, as those of mutual_neighbors; columns: how many rows their ids may name.
void save_csr(const RangeNeighbors& neighbors, std::size_t columns, const std::filesystem::path& path);

}  // namespace nearwise

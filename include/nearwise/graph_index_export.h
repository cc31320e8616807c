// Search graphs for other libraries: build here, serve there.
//
// Files are written atomically, and the same index gives the same bytes.
#pragma once

#include <filesystem>

#include "nearwise/context.h"
#include "nearwise/export.h"
#include "nearwise/graph_index.h"

namespace NEARWISE_EXPORT nearwise {

// A file that hnswlib (0.8) loads: hnswlib.Index(space, dim).load_index(path), with space "l2" for
// sqeuclidean and euclidean (hnswlib returns squared distances), "ip" or "cosine". Vectors are written as
// f32, normalized for cosine. Level 0 has the edges of the index; level 1 has its entry vectors, with edges
// of their own. Labels are the ids. Removed vectors are marked as deleted.
void export_hnswlib(const Context& context, const GraphIndex& index, const std::filesystem::path& path);

// A folder that SVS (0.5, package scalable-vs) loads:
//   svs.Vamana(folder + "/config", svs.GraphLoader(folder + "/graph"),
//              svs.VectorDataLoader(folder + "/vectors.fvecs", svs.DataType.float32), distance)
// with distance L2 for sqeuclidean, euclidean and cosine, MIP for inner_product; SVS's loaders for compressed
// vectors work too. Vectors are written as f32, normalized for cosine. SVS returns row numbers, which are
// positions in GraphIndex::ids(). Throws Error(invalid_argument) if the index has removed vectors, or others
// that are not in the order of their ids: call compact() first.
void export_svs(const Context& context, const GraphIndex& index, const std::filesystem::path& folder);

// A folder that DiskANN (0.7, package diskannpy) loads in memory:
//   diskannpy.StaticMemoryIndex(folder, num_threads=1, initial_search_complexity=64)
// Vectors are written as f32, normalized for cosine. DiskANN's metric is l2 for sqeuclidean, euclidean and
// cosine, inner product otherwise; for cosine, normalize the queries too. Row numbers and errors are as for
// export_svs().
void export_diskann(const Context& context, const GraphIndex& index, const std::filesystem::path& folder);

}  // namespace nearwise

// What the files of other libraries have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "graph_index/searched_graph.h"
#include "nearwise/context.h"

namespace nearwise::graph_index {

inline constexpr std::size_t exported_rows_at_once = 4096;  // between two checks for cancellation

// For libraries that return row numbers and have no mark for removed vectors: rows are in the order of ids,
// and none is removed.
void require_compact(const char* operation, const SearchedGraph& graph);
void make_folder(const std::filesystem::path& folder);
// Of several files, the one that is written last: without it nothing loads, so nothing loads a mixture of old
// and new ones.
void remove_first(const std::filesystem::path& file);

// For libraries that begin every search at one row: the entry nearest to the mean of all.
std::uint32_t central_entry(const SearchedGraph& graph);

// A vector as f32 [dim], of length 1 for cosine.
void export_vector(const GraphRows& rows, std::size_t row, std::vector<double>& scratch,
                   std::span<float> out);

}  // namespace nearwise::graph_index

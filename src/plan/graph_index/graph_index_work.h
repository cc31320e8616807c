// The tasks of a graph index: the files between them, and the work of each.
//
//   input     the vectors                           -> checksums of the file
//   codes     the vectors                           -> 8-bit codes, and how they were made
//   nibbles   the codes                             -> 4-bit codes; large indexes only
//   sample, train, assign, build, merge, measure:      the k-NN graph of the codes (plan/tasks/graph_work.h)
//   prune     a block's lists, the codes            -> its edges, and the reverse of each, by target block
//   link      a block: its edges, reverse edges of
//             all blocks, the codes                 -> its edges, pruned again
//   entries   the codes                             -> the entry tree
//   connect   the edges of all blocks, the codes    -> edges to add so that all rows can be reached
//   edges     the edges of all blocks, added ones   -> the edges of the index
//   finish    codes, edges, entry tree, vectors     -> the index, calibrated, under the output's name
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "backend/graph_search.h"
#include "codes/scalar_codec.h"
#include "io/container/container_reader.h"
#include "nearwise/plan.h"
#include "plan/engine/plan_input.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

struct GraphIndexWork {
  PlanFiles files;
  GraphIndexPlanOptions options;
  GraphWork graph;  // of the codes
  std::size_t rows = 0;
  std::size_t dim = 0;
  ElementType type = ElementType::f32;
  std::size_t block_rows = 0;   // of edges
  std::size_t nibble_rows = 0;  // from as many vectors on there are 4-bit codes
  std::uint64_t least_limit = 0;

  std::size_t degree() const { return options.index.degree; }
  bool has_nibbles() const { return rows >= nibble_rows; }
  std::size_t blocks() const { return (rows + block_rows - 1) / block_rows; }
  std::size_t first_row(std::size_t block) const { return block * block_rows; }
  std::size_t rows_of(std::size_t block) const { return std::min(block_rows, rows - first_row(block)); }
  ScalarCodec shape_of_codes() const { return {.metric = options.index.metric, .dim = dim}; }
  std::filesystem::path file_of(const std::string& task) const { return files.work / (task + ".nw"); }
};

// The work with blocks that keep the memory limit. Throws Error(out_of_memory) in the name of
// plan_graph_index.
GraphIndexWork graph_index_work(const Context& context, const PlanFiles& files, const RowsView& rows,
                                const GraphIndexPlanOptions& options);
// Tests pass other blocks.
Plan plan_of(const Context& context, const GraphIndexWork& work);

inline constexpr const char* codes_name = "codes";
inline constexpr const char* nibbles_name = "nibbles";
std::string prune_name(std::size_t block);
std::string link_name(std::size_t block);
inline constexpr const char* entries_name = "entries";
inline constexpr const char* connect_name = "connect";
inline constexpr const char* edges_name = "edges";
inline constexpr const char* finish_graph_index_name = "finish";

void write_codes(const Context& context, const GraphIndexWork& work);
void write_nibbles(const Context& context, const GraphIndexWork& work);
void prune_block(const Context& context, const GraphIndexWork& work, std::size_t block);
void link_block(const Context& context, const GraphIndexWork& work, std::size_t block);
void train_entries(const Context& context, const GraphIndexWork& work);
void connect_blocks(const Context& context, const GraphIndexWork& work);
void join_edges(const Context& context, const GraphIndexWork& work);
void finish_graph_index(const Context& context, const GraphIndexWork& work);

// The codes of all vectors, verified as they are asked for.
class Codes {
 public:
  Codes(const Context& context, const GraphIndexWork& work);

  MatrixView<const std::uint8_t> all() const { return matrix(input_.all()); }
  // All codes, of which only row(0) ... row(count - 1) may be read.
  MatrixView<const std::uint8_t> rows_at(std::size_t count,
                                         const std::function<std::size_t(std::size_t)>& row) const {
    return matrix(input_.rows_at(count, row));
  }

 private:
  static MatrixView<const std::uint8_t> matrix(const RowsView& rows) {
    return {reinterpret_cast<const std::uint8_t*>(rows.data()), rows.rows(), rows.stride_bytes()};
  }

  PlanInput input_;
};

// The edges that `link` has written, of all blocks.
struct LinkedEdges {
  explicit LinkedEdges(const GraphIndexWork& work);

  std::vector<ContainerReader> readers;
  std::vector<MatrixView<const std::int32_t>> blocks;
};

// How the codes were made. task: the one that wrote them.
ScalarCodec read_codec(const GraphIndexWork& work, const char* task);

}  // namespace nearwise::plan

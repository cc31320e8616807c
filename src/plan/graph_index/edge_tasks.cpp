// prune, link: the edges of a block of rows.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "backend/context_state.h"
#include "core/check.h"
#include "graph_index/edges/build_edges.h"
#include "graph_index/graph_sections.h"
#include "io/container/container_writer.h"
#include "plan/graph_index/graph_index_work.h"
#include "plan/tasks/partial_neighbors.h"

namespace nearwise::plan {
namespace {

// The neighbours of a block's rows in the k-NN graph.
Buffer<std::int32_t> neighbors_of(const Context& context, const GraphIndexWork& work, std::size_t block) {
  const GraphShape& shape = work.graph.shape;
  const std::size_t length = work.graph.options.degree;
  const std::size_t pass = last_pass(work.graph);
  Buffer<std::int32_t> lists(*context.state().budget, work.rows_of(block) * length);
  std::size_t row = work.first_row(block);
  const std::size_t end = row + work.rows_of(block);
  std::int32_t* out = lists.data();
  while (row < end) {
    const std::size_t merged = row / shape.block_rows;
    const MergedBlock found(work.graph, merged, merge_name(pass, merged));
    for (; row < end && row / shape.block_rows == merged; ++row)
      for (const std::uint32_t id : found.ids.row(row - shape.first_row(merged)))
        *out++ = id == no_row ? no_edge : static_cast<std::int32_t>(id);
  }
  return lists;
}

// Calls visit(row, target) for the edges of a block, in the order of rows.
template <typename Visit>
void for_each_edge(const Context& context, MatrixView<const std::int32_t> edges, const Visit& visit) {
  for (std::size_t row = 0; row < edges.rows(); ++row) {
    if (row % 4096 == 0) context.state().cancel.check();
    for (const std::int32_t target : edges.row(row)) {
      if (target == no_edge) break;
      visit(row, static_cast<std::size_t>(target));
    }
  }
}

// The edges of all blocks that lead to one of them: targets, and their sources in ascending order.
class EdgesToBlock {
 public:
  EdgesToBlock(const GraphIndexWork& work, std::size_t block) : work_(work), block_(block) {
    for (std::size_t from = 0; from < work.blocks(); ++from) add(from);
  }

  template <typename Visit>
  void for_each(const Context& context, const Visit& visit) const {
    for (const Part& part : parts_) {
      context.state().cancel.check();
      for (std::size_t i = 0; i < part.targets.rows(); ++i) visit(part.targets(i, 0), part.sources(i, 0));
    }
  }

 private:
  struct Part {
    MatrixView<const std::uint32_t> targets;
    MatrixView<const std::uint32_t> sources;
  };

  void add(std::size_t from) {
    readers_.push_back(ContainerReader::open(work_.file_of(prune_name(from))));
    const ContainerReader& reader = readers_.back();
    const SectionView all = reader.section("targets");
    const auto ends = reader.section("ends").rows<std::uint64_t>();
    graph_index::check_shape(ends.rows() == work_.blocks() && ends.cols() == 1, "ends", reader.source());
    graph_index::check_shape(all.info().columns == 1 &&
                                 reader.section("sources").info().rows == all.info().rows &&
                                 reader.section("sources").info().columns == 1,
                             "sources", reader.source());
    const std::uint64_t first = block_ == 0 ? 0 : ends(block_ - 1, 0);
    const std::uint64_t end = ends(block_, 0);
    graph_index::check_shape(first <= end && end <= all.info().rows, "ends", reader.source());
    parts_.push_back({all.rows<std::uint32_t>(first, end - first),
                      reader.section("sources").rows<std::uint32_t>(first, end - first)});
    const std::size_t first_row = work_.first_row(block_);
    for (std::size_t i = 0; i < end - first; ++i)
      if (parts_.back().targets(i, 0) - first_row >= work_.rows_of(block_) ||
          parts_.back().sources(i, 0) >= work_.rows)
        fail(ErrorCode::corrupt, "{}: edge {} does not lead to block {}", reader.source(), first + i, block_);
  }

  const GraphIndexWork& work_;
  const std::size_t block_;
  std::vector<ContainerReader> readers_;
  std::vector<Part> parts_;
};

}  // namespace

std::string prune_name(std::size_t block) { return fmt::format("prune-{:04}", block); }
std::string link_name(std::size_t block) { return fmt::format("link-{:04}", block); }

void prune_block(const Context& context, const GraphIndexWork& work, std::size_t block) {
  MemoryBudget& budget = *context.state().budget;
  const std::size_t first = work.first_row(block);
  const std::size_t count = work.rows_of(block);
  const std::size_t length = work.graph.options.degree;
  Buffer<std::int32_t> made(budget, count * work.degree());
  const MatrixView<const std::int32_t> edges(made.data(), count, work.degree());
  {
    const Buffer<std::int32_t> lists = neighbors_of(context, work, block);
    const Codes input(context, work);
    // The rows themselves, too.
    const auto codes = input.rows_at(lists.size() + count, [&](std::size_t i) {
      if (i >= lists.size()) return first + i - lists.size();
      return lists[i] == no_edge ? first : static_cast<std::size_t>(lists[i]);
    });
    ProgressMeter progress(context.state().options.progress, context.state().clock, "plan_graph_index",
                           count);
    graph_index::prune_block(context, codes,
                             {.first_row = first,
                              .lists = {lists.data(), count, length},
                              .edges = {made.data(), count, work.degree()}},
                             &progress);
  }
  std::vector<std::uint64_t> ends(work.blocks() + 1, 0);
  for_each_edge(context, edges,
                [&](std::size_t, std::size_t target) { ++ends[target / work.block_rows + 1]; });
  for (std::size_t to = 0; to < work.blocks(); ++to) ends[to + 1] += ends[to];
  Buffer<std::uint32_t> targets(budget, ends.back());
  Buffer<std::uint32_t> sources(budget, ends.back());
  for_each_edge(context, edges, [&](std::size_t row, std::size_t target) {
    const std::uint64_t place = ends[target / work.block_rows]++;
    targets[place] = static_cast<std::uint32_t>(target);
    sources[place] = static_cast<std::uint32_t>(first + row);
  });
  ContainerWriter writer(work.file_of(prune_name(block)), "graph_pruned");
  writer.write_metadata(nlohmann::json::object());
  writer.write_section("edges", edges);
  writer.write_section("ends", MatrixView<const std::uint64_t>(ends.data(), work.blocks(), 1));
  writer.write_section("targets", MatrixView<const std::uint32_t>(targets.data(), targets.size(), 1));
  writer.write_section("sources", MatrixView<const std::uint32_t>(sources.data(), sources.size(), 1));
  writer.commit();
}

void link_block(const Context& context, const GraphIndexWork& work, std::size_t block) {
  MemoryBudget& budget = *context.state().budget;
  const std::size_t first = work.first_row(block);
  const std::size_t count = work.rows_of(block);
  const std::size_t degree = work.degree();
  const ContainerReader reader = ContainerReader::open(work.file_of(prune_name(block)));
  const auto lists = reader.section("edges").rows<std::int32_t>();
  graph_index::check_shape(lists.rows() == count && lists.cols() == degree, "edges", reader.source());
  graph_index::check_edges(lists, work.rows, reader.source());
  const EdgesToBlock found(work, block);
  Buffer<std::uint64_t> offsets(budget, count + 1);
  std::ranges::fill(offsets.span(), std::uint64_t{0});
  found.for_each(context, [&](std::size_t target, std::uint32_t) { ++offsets[target - first + 1]; });
  for (std::size_t row = 0; row < count; ++row) offsets[row + 1] += offsets[row];

  ContainerWriter writer(work.file_of(link_name(block)), "graph_linked");
  writer.write_metadata(nlohmann::json::object());
  writer.begin_section("edges", container::Element::i32, {.columns = degree});
  const Codes input(context, work);
  ProgressMeter progress(context.state().options.progress, context.state().clock, "plan_graph_index", count);
  // All rows at once, unless very many edges lead to them.
  const std::uint64_t room = std::uint64_t{2} * degree * work.block_rows;
  for (std::size_t begin = 0; begin < count;) {
    std::size_t end = begin + 1;
    while (end < count && offsets[end + 1] - offsets[begin] <= room) ++end;
    const std::size_t rows = end - begin;
    Buffer<std::uint64_t> own(budget, rows + 1);
    for (std::size_t row = 0; row <= rows; ++row) own[row] = offsets[begin + row] - offsets[begin];
    Buffer<std::uint32_t> sources(budget, own[rows]);
    found.for_each(context, [&](std::size_t target, std::uint32_t source) {
      const std::size_t row = target - first;
      if (row >= begin && row < end) sources[own[row - begin]++] = source;
    });
    for (std::size_t row = rows; row > 0; --row) own[row] = own[row - 1];
    own[0] = 0;
    const MatrixView<const std::int32_t> some(lists.row(begin).data(), rows, degree);
    const std::size_t listed = rows * degree;
    const auto codes = input.rows_at(listed + sources.size() + rows, [&](std::size_t i) -> std::size_t {
      if (i >= listed + sources.size()) return first + begin + i - listed - sources.size();
      if (i >= listed) return sources[i - listed];
      const std::int32_t target = some.data()[i];
      return target == no_edge ? first : static_cast<std::size_t>(target);
    });
    Buffer<std::int32_t> edges(budget, rows * degree);
    graph_index::prune_block(context, codes,
                             {.first_row = first + begin,
                              .lists = some,
                              .offsets = own.span(),
                              .sources = sources.span(),
                              .edges = {edges.data(), rows, degree}},
                             &progress);
    writer.append(std::as_bytes(edges.span()));
    begin = end;
  }
  writer.commit();
}

}  // namespace nearwise::plan

// merge: the best neighbours of a block's rows, from all groups of this pass and from earlier passes.
#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "backend/context_state.h"
#include "core/checked.h"
#include "core/distance.h"
#include "io/container/container_writer.h"
#include "nearwise/exact.h"
#include "ops/gather_rows.h"
#include "plan/tasks/graph_work.h"
#include "plan/tasks/partial_neighbors.h"

namespace nearwise::plan {
namespace {

constexpr std::size_t task_rows = 1024;
// Rows with incomplete lists per exact search.
constexpr std::size_t short_rows = 1024;

class MergingBlock {
 public:
  MergingBlock(const Context& context, const GraphWork& work, std::size_t block)
      : context_(context.without_progress()),
        work_(work),
        first_row_(work.shape.first_row(block)),
        rows_(work.shape.rows_of(block)),
        ids_(*context.state().budget, rows_ * work.options.degree),
        distances_(*context.state().budget, rows_ * work.options.degree) {}

  // Keeps the best of the entries, which may contain duplicates.
  void put(std::size_t row, std::vector<NeighborEntry>& entries) {
    const std::size_t degree = work_.options.degree;
    updates_ += put_best(work_.options.metric, entries, ids_.span().subspan(row * degree, degree),
                         distances_.span().subspan(row * degree, degree));
  }

  void merge(const PartialNeighbors& found, const MergedBlock* before) {
    context_.state().threads->for_each(divide_up(rows_, task_rows), [&](std::size_t task) {
      context_.state().cancel.check();
      std::vector<NeighborEntry> entries;
      for (std::size_t row = task * task_rows; row < std::min(rows_, (task + 1) * task_rows); ++row) {
        entries.clear();
        found.append(static_cast<std::uint32_t>(first_row_ + row), work_.options.metric, entries);
        if (before != nullptr)
          append_entries(work_.options.metric, before->ids.row(row), before->distances.row(row), false,
                         entries);
        put(row, entries);
      }
    });
  }

  // Rows of very small partitions have too few neighbours and are searched exactly.
  void complete() {
    const std::size_t degree = work_.options.degree;
    const std::size_t full = std::min(degree, work_.shape.rows - 1);
    std::vector<std::size_t> incomplete;
    const auto flush = [&] {
      if (!incomplete.empty()) search(incomplete);
      incomplete.clear();
    };
    for (std::size_t row = 0; row < rows_ && full != 0; ++row) {
      if (ids_[row * degree + full - 1] == no_row) incomplete.push_back(row);
      if (incomplete.size() == short_rows) flush();
    }
    flush();
  }

  void write(const std::filesystem::path& path) {
    const std::size_t degree = work_.options.degree;
    ContainerWriter writer(path, "graph_block");
    writer.write_metadata({{"updates", updates_.load()}});
    writer.write_section("ids", MatrixView<const std::uint32_t>(ids_.data(), rows_, degree));
    writer.write_section("distances", MatrixView<const float>(distances_.data(), rows_, degree));
    writer.commit();
  }

 private:
  void search(const std::vector<std::size_t>& rows) {
    const PlanInput input = work_.input(context_);
    const RowsView vectors = input.all();
    const GatheredRows queries(context_, vectors, rows.size(), [&](std::size_t i) {
      return PlacedRow{first_row_ + rows[i], i};
    });
    const Neighbors nearest = knn(context_, queries.view(), vectors, work_.options.degree + 1,
                                  {.metric = work_.options.metric, .short_rows = ShortRows::pad});
    std::vector<NeighborEntry> entries;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      entries.clear();
      for (std::size_t j = 0; j < nearest.ids.cols(); ++j)
        if (const Id id = nearest.ids(i, j);
            id != no_id && static_cast<std::size_t>(id) != first_row_ + rows[i])
          entries.push_back(make_entry(sort_key(work_.options.metric, nearest.distances(i, j)),
                                       static_cast<std::uint32_t>(id), true));
      put(rows[i], entries);
    }
  }

  const Context context_;
  const GraphWork& work_;
  const std::size_t first_row_;
  const std::size_t rows_;
  Buffer<std::uint32_t> ids_;
  Buffer<float> distances_;
  std::atomic<std::uint64_t> updates_{0};
};

}  // namespace

void merge_block(const Context& context, const GraphWork& work, std::size_t pass, std::size_t block) {
  MergingBlock merging(context, work, block);
  const PartialNeighbors found(work, pass, work.shape.first_row(block), work.shape.rows_of(block));
  std::optional<MergedBlock> before;
  if (pass != 0) before.emplace(work, block, merge_name(pass - 1, block));
  merging.merge(found, before ? &*before : nullptr);
  merging.complete();
  merging.write(work.file_of(merge_name(pass, block)));
}

}  // namespace nearwise::plan

// Local joins of groups: groups are split into tiles of pairs, one block of threads each.
//
// As on the CPU, scores select the pairs to evaluate and exact distances decide which entries stay, so the
// lists have the CPU's bytes whatever the order of blocks and locks.
#include <algorithm>

#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/graph/join_rows.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/tuning/join_groups.h"
#include "core/checked.h"

namespace nearwise::gpu {
namespace {

constexpr std::size_t tile_side = tuning::join_tile;

// Tiles and members of several groups, or of a part of a large one.
class TileQueue {
 public:
  TileQueue(const CudaStream& stream, JoinRows& rows, const Groups& groups)
      : stream_(stream),
        rows_(rows),
        groups_(groups),
        host_tiles_(stream.budget(), tuning::max_join_tiles),
        tiles_(stream, tuning::max_join_tiles, join_name),
        members_(stream, member_capacity(groups), join_name) {}

  static std::uint64_t bytes() {
    return buffer_bytes(tuning::max_join_tiles, sizeof(JoinTile)) +
           device_bytes(tuning::max_join_tiles, sizeof(JoinTile)) +
           device_bytes(tuning::max_join_members, sizeof(std::uint32_t));
  }

  void run() {
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      if (groups_.ends[group] - first_member_ > members_.size()) {
        launch(groups_.begin(group));
        first_member_ = groups_.begin(group);
      }
      add(group);
    }
    launch(groups_.ends.empty() ? 0 : groups_.ends.back());
  }

 private:
  static std::size_t member_capacity(const Groups& groups) {
    std::size_t largest = 0;
    for (std::size_t group = 0; group < groups.size(); ++group)
      largest = std::max(largest, groups.of(group).size());
    return std::max(largest, std::min(groups.members.size(), tuning::max_join_members));
  }

  // Rows are the new members; they are compared with later members, or with the old members only if groups
  // are bipartite.
  void add(std::size_t group) {
    const std::size_t size = groups_.of(group).size();
    const std::size_t new_count = groups_.new_counts[group];
    for (std::size_t row = 0; row < new_count; row += tile_side)
      for (std::size_t column = groups_.bipartite ? new_count : row; column < size; column += tile_side) {
        if (count_ == host_tiles_.size()) launch(groups_.ends[group]);
        const auto first = static_cast<std::uint32_t>(groups_.begin(group) - first_member_);
        host_tiles_[count_++] = {.first_row = first + static_cast<std::uint32_t>(row),
                                 .first_column = first + static_cast<std::uint32_t>(column),
                                 .rows = static_cast<std::uint32_t>(std::min(tile_side, new_count - row)),
                                 .columns = static_cast<std::uint32_t>(std::min(tile_side, size - column))};
      }
  }

  // Joins the queued tiles, whose members end at `end`.
  void launch(std::uint64_t end) {
    if (count_ == 0) return;
    stream_.context.cancel.check();
    copy_to_device(stream_, groups_.members.subspan(first_member_, end - first_member_), members_.data(),
                   join_name);
    copy_to_device(stream_, std::span<const JoinTile>(host_tiles_.data(), count_), tiles_.data(), join_name);
    JoinTask task = rows_.task();
    task.tiles = tiles_.data();
    task.tile_count = static_cast<std::uint32_t>(count_);
    task.members = members_.data();
    launch_join_tiles(stream_.handle(), rows_.type(), task);
    count_ = 0;
  }

  const CudaStream& stream_;
  JoinRows& rows_;
  const Groups& groups_;
  std::uint64_t first_member_ = 0;  // first member on the device
  std::size_t count_ = 0;
  Buffer<JoinTile> host_tiles_;
  DeviceBuffer<JoinTile> tiles_;
  DeviceBuffer<std::uint32_t> members_;
};

}  // namespace

JoinCosts join_costs(const Stream&, const KnnCostsArgs& args) {
  return {.bytes_per_row = JoinRows::bytes_per_row(args),
          .bytes_per_member = sizeof(std::uint32_t),
          .fixed_bytes = JoinRows::starting_bytes(args) + TileQueue::bytes() + device_bytes(1, 1)};
}

std::unique_ptr<JoinState> start_join(Stream& stream, const StartJoinArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  return std::make_unique<JoinRows>(cuda, args);
}

void join_groups(Stream& stream, const JoinGroupsArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  auto& rows = static_cast<JoinRows&>(args.state);
  if (args.groups.size() == 0) return;
  TileQueue queue(cuda, rows, args.groups);
  rows.fetch_lists(cuda);
  queue.run();
  rows.return_lists(cuda);
  if (args.progress != nullptr) args.progress->add(args.groups.members.size());
}

}  // namespace nearwise::gpu

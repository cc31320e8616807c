// Files between the tasks of method `pairs`, and which of them holds a shard's neighbours before a round.
#include <fmt/format.h>

#include "io/files/read_ahead.h"
#include "plan/pairs/pair_work.h"

namespace nearwise::plan {

std::string build_shard_name(std::size_t shard) { return fmt::format("build-{:04}", shard); }
std::string merge_pair_name(const Pairing& pairing) {
  return fmt::format("merge-{:04}-{:04}", pairing.left, pairing.right);
}

ShardVersion version_before(const GraphWork& work, std::size_t shard, std::size_t round) {
  const auto last = PairSchedule(work.shape.blocks).before(shard, round);
  if (!last) return {build_shard_name(shard), ""};
  return {merge_pair_name(*last), last->left == shard ? "left_" : "right_"};
}

void prefetch_pair(const GraphWork& work, const Pairing& pairing, const std::stop_token& stop) {
  const VectorFile file = VectorFile::open(work.files.vectors);
  if (file.rows().rows() != work.shape.rows) return;  // the reader reports it
  for (const std::size_t shard : {pairing.left, pairing.right}) {
    const RowsView rows = file.rows().slice(work.shape.first_row(shard), work.shape.rows_of(shard));
    ask_for(rows.row(0), (rows.rows() - 1) * rows.stride_bytes() + work.shape.row_bytes(), stop);
  }
}

std::vector<MergedBlock> paired_shards(const GraphWork& work) {
  const std::size_t rounds = PairSchedule(work.shape.blocks).rounds();
  std::vector<MergedBlock> shards;
  for (std::size_t shard = 0; shard < work.shape.blocks; ++shard) {
    const ShardVersion version = version_before(work, shard, rounds);
    shards.emplace_back(work, shard, version.task, version.prefix);
  }
  return shards;
}

}  // namespace nearwise::plan

// train, assign, compare: a join by partitions.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "core/distance.h"
#include "graph/random_streams.h"
#include "io/container/container_writer.h"
#include "nearwise/vector_file.h"
#include "ops/finite_rows.h"
#include "plan/join/join_work.h"
#include "plan/join/partition_files.h"
#include "plan/join/partition_members.h"
#include "plan/join/partition_reach.h"
#include "plan/tasks/write_rows.h"

namespace nearwise::plan {
namespace {

// Finds the pairs of one partition: of a vector at home with every later one and with every copy. Partitions
// larger than a chunk are compared chunk by chunk, two of which are in memory.
class PartitionJoin {
 public:
  PartitionJoin(const Context& context, const JoinWork& work, const RowsView& like, PairRuns& runs)
      : context_(context), work_(work), like_(like), runs_(runs) {}

  void join(std::vector<PartitionPiece> pieces, std::size_t homes) {
    pieces_ = std::move(pieces);
    std::size_t all = 0;
    for (const PartitionPiece& piece : pieces_) all += piece.rows.size();
    if (homes == 0 || all < 2) return;
    // Of a partition that fits, one chunk.
    const std::size_t most = std::max<std::size_t>(2, work_.partitions.chunk_rows);
    const std::size_t chunk = all <= most ? all : most / 2;
    const std::size_t held = std::min(all, 2 * chunk);
    vectors_ = Buffer<std::byte>(*context_.state().budget, held * row_bytes_of(like_));
    rows_ = Buffer<std::uint32_t>(*context_.state().budget, held);
    for (std::size_t first = 0; first < homes; first += chunk) {
      const std::size_t count = std::min(chunk, all - first);
      const RowRange left = {0, std::min(count, homes - first)};
      gather(first, count, 0);
      compare(left, {0, count});
      for (std::size_t later = first + count; later < all; later += chunk) {
        const std::size_t later_count = std::min(chunk, all - later);
        gather(later, later_count, count);
        compare(left, {count, later_count});
      }
    }
    vectors_ = {};
    rows_ = {};
  }

  std::uint64_t compared() const { return compared_; }

 private:
  // The vectors [first, first + count) of the partition, from place `at` on.
  void gather(std::size_t first, std::size_t count, std::size_t at) {
    const std::size_t row_bytes = row_bytes_of(like_);
    std::size_t begin = 0;  // of the piece
    for (const PartitionPiece& piece : pieces_) {
      context_.state().cancel.check();
      const std::size_t from = std::max(begin, first);
      const std::size_t to = std::min(begin + piece.rows.size(), first + count);
      if (from < to) {
        const std::size_t place = at + from - first;
        std::ranges::copy(piece.rows.subspan(from - begin, to - from), rows_.data() + place);
        std::memcpy(vectors_.data() + place * row_bytes, piece.vectors + (from - begin) * row_bytes,
                    (to - from) * row_bytes);
      }
      begin += piece.rows.size();
    }
  }

  void compare(RowRange left, RowRange right) {
    const bool is_self = left.first == right.first;
    compared_ += is_self ? left.count * (left.count - 1) / 2 + left.count * (right.count - left.count)
                         : left.count * right.count;
    const RowsView vectors(vectors_.data(), like_.type(), right.end(), like_.dim(), row_bytes_of(like_));
    find_pairs(context_, work_, vectors, left, right, [&](std::size_t first, const RangeNeighbors& found) {
      for (std::size_t i = 0; i + 1 < found.offsets.size(); ++i)
        for (std::size_t j = found.offsets[i]; j < found.offsets[i + 1]; ++j)
          runs_.add(rows_[first + i], rows_[static_cast<std::size_t>(found.ids[j])],
                    sort_key(work_.metric, found.distances[j]));
    });
  }

  const Context context_;
  const JoinWork& work_;
  const RowsView like_;  // of this shape
  PairRuns& runs_;
  std::vector<PartitionPiece> pieces_;
  Buffer<std::byte> vectors_;
  Buffer<std::uint32_t> rows_;  // their numbers in the file
  std::uint64_t compared_ = 0;
};

}  // namespace

void train_join(const Context& context, const JoinWork& work) {
  const PlanInput input = work.input(context);
  const Random random = graph::random_stream(context.seed(), graph::Draw::partition_rows);
  const std::size_t sampled = work.partitions.sampled_rows;
  const RowsView rows = input.rows_at(
      sampled, [&](std::size_t i) { return graph::RowSample::draw(random, work.rows, sampled, i); });
  const Matrix<float> centroids = join_centroids(context, work, rows);
  ContainerWriter writer(work.file_of(train_join_name), "join_partitions");
  writer.write_metadata(nlohmann::json::object());
  writer.write_section("centroids", MatrixView<const float>(centroids));
  const PartitionReach reach(work.metric, work.threshold, rows.dim());
  const std::size_t count = centroids.rows();
  writer.begin_section("between", container::Element::f32, {.columns = count});
  write_rows(context, writer, count, count * sizeof(float), [&](std::size_t home, std::byte* out) {
    for (std::size_t other = 0; other < count; ++other) {
      const float between = other < home ? reach.between(centroids.row(home), centroids.row(other)) : 0;
      std::memcpy(out + other * sizeof(float), &between, sizeof(between));
    }
  });
  writer.commit();
}

void assign_join(const Context& context, const JoinWork& work, std::size_t block) {
  const JoinCentroids trained(work);
  const PlanInput input = work.input(context);
  const RowRange range = work.block(block);
  const RowsView rows = input.slice(range.first, range.count);
  check_finite(work.operation(), context, rows, range.first);
  const PartitionReach reach(work.metric, work.threshold, rows.dim());
  AssignmentWriter writer(context, work, rows, range.first, trained.centroids.rows(),
                          work.file_of(assign_join_name(block)));
  ProgressMeter progress(context.state().options.progress, context.state().clock, work.operation(),
                         rows.rows());
  MemberSearch(context, trained.centroids, reach, work.partitions.piece, trained.between)
      .search(rows, range.first, [&](std::span<const PartitionMember> members) {
        writer.add(members);
        const auto copies = std::ranges::count_if(members, &PartitionMember::is_copy);
        progress.add(members.size() - static_cast<std::size_t>(copies));
      });
  writer.commit();
}

void compare_partitions(const Context& context, const JoinWork& work, std::size_t group) {
  const JoinCentroids trained(work);
  const JoinCentroids::Range partitions = trained.group(work, group);
  const AssignedGroup vectors(context, work, partitions, trained.centroids.rows());
  const VectorFile file = VectorFile::open(work.files.vectors);
  PairRuns runs(context, work, work.file_of(compare_name(group)));
  PartitionJoin joining(context.without_progress(), work, file.rows(), runs);
  std::uint64_t homes = 0;
  for (std::size_t partition = partitions.first; partition < partitions.end; ++partition)
    homes += vectors.homes(partition);
  ProgressMeter progress(context.state().options.progress, context.state().clock, work.operation(), homes);
  for (std::size_t partition = partitions.first; partition < partitions.end; ++partition) {
    joining.join(vectors.of(partition), vectors.homes(partition));
    progress.add(vectors.homes(partition));
  }
  runs.commit(vectors.stored(), joining.compared());
}

}  // namespace nearwise::plan

#include "plan/partition/trained_partitions.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "core/check.h"

namespace nearwise::plan {
namespace {

void check_super_partitions(const GraphWork& work, const ContainerReader& reader, std::size_t partitions,
                            const SuperPartitionsView& super_partitions) {
  const std::size_t most =
      work.shape.has_super_partitions(partitions) ? SuperPartitions::max_super_partitions(partitions) : 0;
  const std::span<const std::uint64_t> ends(super_partitions.ends.data(), super_partitions.ends.rows());
  if (super_partitions.size() > most || (most != 0 && super_partitions.size() == 0) ||
      super_partitions.centres.cols() != work.shape.dim || ends.size() != super_partitions.size() ||
      super_partitions.ends.cols() != 1 || super_partitions.partitions.cols() != 1 ||
      (ends.empty() ? 0 : ends.back()) != super_partitions.partitions.rows())
    fail(ErrorCode::corrupt,
         "{}: {} super_partitions with {} partitions, at most {} super_partitions expected", reader.source(),
         super_partitions.size(), super_partitions.partitions.rows(), most);
  for (std::size_t super_partition = 0; super_partition < ends.size(); ++super_partition)
    if (ends[super_partition] <= (super_partition == 0 ? 0 : ends[super_partition - 1]) ||
        super_partitions.partitions_of(super_partition).size() > SuperPartitions::max_near(partitions))
      fail(ErrorCode::corrupt, "{}: super_partition {} ends at partition {}", reader.source(),
           super_partition, ends[super_partition]);
  if (std::any_of(super_partitions.partitions.data(),
                  super_partitions.partitions.data() + super_partitions.partitions.rows(),
                  [&](std::uint32_t partition) { return partition >= partitions; }))
    fail(ErrorCode::corrupt, "{}: a super_partition has a number that is no partition", reader.source());
}

}  // namespace

TrainedPartitions::TrainedPartitions(const GraphWork& work, std::size_t pass)
    : reader(ContainerReader::open(work.file_of(train_name(pass)))),
      centroids(reader.section("centroids").rows<float>()),
      super_partitions{reader.section("super_partitions").rows<float>(),
                       reader.section("super_partition_ends").rows<std::uint64_t>(),
                       reader.section("super_partition_members").rows<std::uint32_t>()},
      order(reader.section("order").rows<std::uint32_t>()),
      ends_of_groups(reader.section("group_ends").rows<std::uint64_t>()) {
  try {
    const nlohmann::json metadata = reader.metadata();
    rule = {.overlap = metadata.at("overlap").get<std::size_t>(),
            .reach = metadata.at("reach").get<double>()};
    is_enough = metadata.at("is_enough").get<bool>();
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::corrupt, "{}: metadata: {}", reader.source(), error.what());
  }
  if (rule.overlap < 1 || rule.overlap > work.shape.overlap || centroids.rows() < work.shape.min_partitions ||
      centroids.rows() > work.shape.partitions || order.rows() != centroids.rows() ||
      ends_of_groups.rows() != work.shape.groups)
    fail(ErrorCode::corrupt, "{}: {} to {} partitions in {} groups expected, {} in {} found", reader.source(),
         work.shape.min_partitions, work.shape.partitions, work.shape.groups, centroids.rows(),
         ends_of_groups.rows());
  // Numbers that others are found by.
  std::vector<bool> seen(order.rows());
  for (std::size_t place = 0; place < order.rows(); ++place) {
    const std::uint32_t partition = order(place, 0);
    if (partition >= seen.size() || seen[partition])
      fail(ErrorCode::corrupt, "{}: partition {} is at no place of its own", reader.source(), partition);
    seen[partition] = true;
  }
  check_super_partitions(work, reader, centroids.rows(), super_partitions);
  const std::span<const std::uint64_t> ends(ends_of_groups.data(), ends_of_groups.rows());
  if (centroids.cols() != work.shape.dim || order.cols() != 1 || ends_of_groups.cols() != 1 ||
      !std::ranges::is_sorted(ends) || ends.back() != order.rows())
    fail(ErrorCode::corrupt, "{}: groups that are not all partitions", reader.source());
}

}  // namespace nearwise::plan

#include "plan/partition/trained_partitions.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "core/check.h"
#include "plan/partition/choose_overlap.h"

namespace nearwise::plan {
namespace {

void check_super_partitions(const GraphWork& work, const ContainerReader& reader, std::size_t partitions,
                            const graph::SuperPartitionsView& given) {
  const std::size_t most =
      work.shape.has_super_partitions(partitions) ? graph::SuperPartitions::max_count(partitions) : 0;
  const std::span<const std::uint64_t> ends(given.ends.data(), given.ends.rows());
  if (given.size() > most || (most != 0 && given.size() == 0) || given.centroids.cols() != work.shape.dim ||
      ends.size() != given.size() || given.ends.cols() != 1 || given.partitions.cols() != 1 ||
      (ends.empty() ? 0 : ends.back()) != given.partitions.rows())
    fail(ErrorCode::corrupt, "{}: expected at most {} super-partitions, found {} with {} partitions",
         reader.source(), most, given.size(), given.partitions.rows());
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (ends[i] <= (i == 0 ? 0 : ends[i - 1]) ||
        given.partitions_of(i).size() > graph::SuperPartitions::max_near(partitions))
      fail(ErrorCode::corrupt, "{}: super-partition {} ends at partition {}", reader.source(), i, ends[i]);
  if (std::any_of(given.partitions.data(), given.partitions.data() + given.partitions.rows(),
                  [&](std::uint32_t partition) { return partition >= partitions; }))
    fail(ErrorCode::corrupt, "{}: a super-partition lists a number that is no partition", reader.source());
}

}  // namespace

TrainedPartitions::TrainedPartitions(const GraphWork& work, std::size_t pass)
    : reader(ContainerReader::open(work.file_of(train_name(pass)))),
      centroids(reader.section("centroids").rows<float>()),
      super_partitions{reader.section("super_partitions").rows<float>(),
                       reader.section("super_partition_ends").rows<std::uint64_t>(),
                       reader.section("super_partition_members").rows<std::uint32_t>()},
      order(reader.section("order").rows<std::uint32_t>()),
      group_ends(reader.section("group_ends").rows<std::uint64_t>()) {
  try {
    const nlohmann::json metadata = reader.metadata();
    rule = {.overlap = metadata.at("overlap").get<std::size_t>(),
            .reach = metadata.at("reach").get<double>()};
    is_enough = metadata.at("is_enough").get<bool>();
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::corrupt, "{}: metadata: {}", reader.source(), error.what());
  }
  if (!(*rule.reach >= 1 && *rule.reach <= max_reach))
    fail(ErrorCode::corrupt, "{}: metadata: a reach of 1 to {} expected, {} found", reader.source(),
         max_reach, *rule.reach);
  if (rule.overlap < 1 || rule.overlap > work.shape.overlap || centroids.rows() < work.shape.min_partitions ||
      centroids.rows() > work.shape.partitions || order.rows() != centroids.rows() ||
      group_ends.rows() != work.shape.groups)
    fail(ErrorCode::corrupt, "{}: expected {} to {} partitions in {} groups, found {} in {}", reader.source(),
         work.shape.min_partitions, work.shape.partitions, work.shape.groups, centroids.rows(),
         group_ends.rows());
  std::vector<bool> seen(order.rows());
  for (std::size_t place = 0; place < order.rows(); ++place) {
    const std::uint32_t partition = order(place, 0);
    if (partition >= seen.size() || seen[partition])
      fail(ErrorCode::corrupt, "{}: partition {} is not in the order exactly once", reader.source(),
           partition);
    seen[partition] = true;
  }
  check_super_partitions(work, reader, centroids.rows(), super_partitions);
  const std::span<const std::uint64_t> ends(group_ends.data(), group_ends.rows());
  if (centroids.cols() != work.shape.dim || order.cols() != 1 || group_ends.cols() != 1 ||
      !std::ranges::is_sorted(ends) || ends.back() != order.rows())
    fail(ErrorCode::corrupt, "{}: the groups do not hold all partitions", reader.source());
}

}  // namespace nearwise::plan

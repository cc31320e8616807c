#include "plan/trained_cells.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "core/check.h"

namespace nearwise::plan {

TrainedCells::TrainedCells(const GraphWork& work, std::size_t pass)
    : reader(ContainerReader::open(work.file_of(train_name(pass)))),
      centroids(reader.section("centroids").rows<float>()),
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
  if (rule.overlap < 1 || rule.overlap > work.shape.overlap || centroids.rows() != work.shape.cells ||
      order.rows() != work.shape.cells || ends_of_groups.rows() != work.shape.groups)
    fail(ErrorCode::corrupt, "{}: {} cells in {} groups expected, {} in {} found", reader.source(),
         work.shape.cells, work.shape.groups, centroids.rows(), ends_of_groups.rows());
  // Numbers that others are found by.
  std::vector<bool> seen(order.rows());
  for (std::size_t place = 0; place < order.rows(); ++place) {
    const std::uint32_t cell = order(place, 0);
    if (cell >= seen.size() || seen[cell])
      fail(ErrorCode::corrupt, "{}: cell {} is at no place of its own", reader.source(), cell);
    seen[cell] = true;
  }
  const std::span<const std::uint64_t> ends(ends_of_groups.data(), ends_of_groups.rows());
  if (centroids.cols() != work.shape.dim || order.cols() != 1 || ends_of_groups.cols() != 1 ||
      !std::ranges::is_sorted(ends) || ends.back() != order.rows())
    fail(ErrorCode::corrupt, "{}: groups that are not all cells", reader.source());
}

}  // namespace nearwise::plan

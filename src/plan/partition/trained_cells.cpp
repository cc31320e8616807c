#include "plan/partition/trained_cells.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "core/check.h"

namespace nearwise::plan {
namespace {

void check_regions(const GraphWork& work, const ContainerReader& reader, std::size_t cells,
                   const RegionsView& regions) {
  const std::size_t most = work.shape.has_regions(cells) ? Regions::most_regions(cells) : 0;
  const std::span<const std::uint64_t> ends(regions.ends.data(), regions.ends.rows());
  if (regions.size() > most || (most != 0 && regions.size() == 0) ||
      regions.centres.cols() != work.shape.dim || ends.size() != regions.size() || regions.ends.cols() != 1 ||
      regions.cells.cols() != 1 || (ends.empty() ? 0 : ends.back()) != regions.cells.rows())
    fail(ErrorCode::corrupt, "{}: {} regions with {} cells, at most {} regions expected", reader.source(),
         regions.size(), regions.cells.rows(), most);
  for (std::size_t region = 0; region < ends.size(); ++region)
    if (ends[region] <= (region == 0 ? 0 : ends[region - 1]) ||
        regions.cells_of(region).size() > Regions::most_near(cells))
      fail(ErrorCode::corrupt, "{}: region {} ends at cell {}", reader.source(), region, ends[region]);
  if (std::any_of(regions.cells.data(), regions.cells.data() + regions.cells.rows(),
                  [&](std::uint32_t cell) { return cell >= cells; }))
    fail(ErrorCode::corrupt, "{}: a region has a number that is no cell", reader.source());
}

}  // namespace

TrainedCells::TrainedCells(const GraphWork& work, std::size_t pass)
    : reader(ContainerReader::open(work.file_of(train_name(pass)))),
      centroids(reader.section("centroids").rows<float>()),
      regions{reader.section("regions").rows<float>(), reader.section("region_ends").rows<std::uint64_t>(),
              reader.section("region_cells").rows<std::uint32_t>()},
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
  if (rule.overlap < 1 || rule.overlap > work.shape.overlap || centroids.rows() < work.shape.least_cells ||
      centroids.rows() > work.shape.cells || order.rows() != centroids.rows() ||
      ends_of_groups.rows() != work.shape.groups)
    fail(ErrorCode::corrupt, "{}: {} to {} cells in {} groups expected, {} in {} found", reader.source(),
         work.shape.least_cells, work.shape.cells, work.shape.groups, centroids.rows(),
         ends_of_groups.rows());
  // Numbers that others are found by.
  std::vector<bool> seen(order.rows());
  for (std::size_t place = 0; place < order.rows(); ++place) {
    const std::uint32_t cell = order(place, 0);
    if (cell >= seen.size() || seen[cell])
      fail(ErrorCode::corrupt, "{}: cell {} is at no place of its own", reader.source(), cell);
    seen[cell] = true;
  }
  check_regions(work, reader, centroids.rows(), regions);
  const std::span<const std::uint64_t> ends(ends_of_groups.data(), ends_of_groups.rows());
  if (centroids.cols() != work.shape.dim || order.cols() != 1 || ends_of_groups.cols() != 1 ||
      !std::ranges::is_sorted(ends) || ends.back() != order.rows())
    fail(ErrorCode::corrupt, "{}: groups that are not all cells", reader.source());
}

}  // namespace nearwise::plan

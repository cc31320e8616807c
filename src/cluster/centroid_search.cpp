#include "cluster/centroid_search.h"

#include <algorithm>

#include "core/checked.h"
#include "ops/exact_search.h"

namespace nearwise::cluster {
namespace {

// Rows per tile: enough for all threads of a large machine, within a few megabytes.
constexpr std::size_t max_tile_rows = 65536;

struct Costs {
  AssignCosts assign;
  std::uint64_t fixed_bytes = 0;  // including all centroids, packed as one block
};

Costs costs_of(Stream& stream, const CentroidSearchArgs& args) {
  const AssignCosts costs =
      dispatch(&Ops::assign_costs, "assign", stream,
               KnnCostsArgs{args.rows.dim(), 1, args.metric, args.rows.type(), args.centroid_type});
  const std::uint64_t centroids = round_up<std::uint64_t>(args.max_centroids, costs.base_granule);
  const std::uint64_t per_centroid =
      costs.bytes_per_base_row + (args.distances ? costs.distance_bytes_per_base_row : 0);
  return {costs, costs.fixed_bytes + centroids * per_centroid};
}

// Alignment of the buffers of a prepared tile.
constexpr std::uint64_t tile_overhead = 512;

}  // namespace

std::uint64_t CentroidSearch::min_bytes(const Context& context, const CentroidSearchArgs& args) {
  const auto stream = open_stream(context);
  const Costs costs = costs_of(*stream, args);
  return costs.fixed_bytes + tile_overhead + costs.assign.query_granule * costs.assign.bytes_per_query;
}

CentroidSearch::CentroidSearch(const Context& context, const CentroidSearchArgs& args)
    : args_(args),
      stream_(open_stream(context)),
      // The centre of the rows, because centroids move.
      centre_(centre_of(*stream_, args.rows, args.metric)) {
  const Costs costs = costs_of(*stream_, args);
  const std::size_t granule = costs.assign.query_granule;
  const std::uint64_t row_bytes = costs.assign.bytes_per_query;
  const std::uint64_t available = std::min(context.state().budget->available(), costs.assign.device_bytes);
  std::uint64_t spare = available - std::min(available, costs.fixed_bytes + tile_overhead);
  spare -= std::min(spare / 2, costs.assign.useful_bytes);
  const std::uint64_t granules = std::min<std::uint64_t>(spare / row_bytes, max_tile_rows) / granule;
  tile_ = std::min<std::size_t>(std::max<std::size_t>(1, granules) * granule,
                                std::max<std::size_t>(1, args.rows.rows()));
  const std::uint64_t tiles = divide_up(args.rows.rows(), tile_);
  keep_ = !args.once && (tiles * round_up(tile_, granule)) * row_bytes + tiles * tile_overhead <= spare;
}

std::unique_ptr<PreparedRows> CentroidSearch::prepare(const RowsView& rows, RowsRole role,
                                                      ElementType against, std::size_t first_row) {
  return dispatch(&Ops::prepare_rows, "prepare_rows", *stream_,
                  PrepareArgs{.rows = rows,
                              .role = role,
                              .type = rows.type(),
                              .against = against,
                              .metric = args_.metric,
                              .centre = centre_,
                              .first_row = first_row});
}

RowsView CentroidSearch::tile_of(std::size_t first) const {
  return args_.rows.slice(first, std::min(tile_, args_.rows.rows() - first));
}

std::unique_ptr<PreparedRows> CentroidSearch::prepare_tile(std::size_t first) {
  return prepare(tile_of(first), RowsRole::queries, args_.centroid_type, first);
}

void CentroidSearch::assign(const RowsView& tile, const PreparedRows& prepared, const RowsView& centroids,
                            const PreparedRows& block, std::span<std::uint32_t> ids,
                            std::span<float> distances, ProgressMeter* progress) {
  dispatch(&Ops::assign, "assign", *stream_,
           AssignArgs{.queries = prepared,
                      .query_rows = tile,
                      .block = block,
                      .base = centroids,
                      .metric = args_.metric,
                      .centre = centre_,
                      .nearest = ids,
                      .distances = distances,
                      .progress = progress});
}

void CentroidSearch::nearest(const RowsView& centroids, std::span<std::uint32_t> ids,
                             std::span<float> distances, ProgressMeter* progress) {
  const auto block = prepare(centroids, RowsRole::base, args_.rows.type(), 0);
  for (std::size_t first = 0; first < args_.rows.rows(); first += tile_) {
    const RowsView tile = tile_of(first);
    const std::size_t index = first / tile_;
    std::unique_ptr<PreparedRows> passing;  // the current tile if tiles are not kept
    if (!keep_)
      passing = prepare_tile(first);
    else if (index == kept_.size())
      kept_.push_back(prepare_tile(first));
    const PreparedRows& rows = keep_ ? *kept_[index] : *passing;
    const auto own_ids = ids.subspan(first, tile.rows());
    const auto own_distances = distances.empty() ? distances : distances.subspan(first, tile.rows());
    assign(tile, rows, centroids, *block, own_ids, own_distances, progress);
  }
}

}  // namespace nearwise::cluster

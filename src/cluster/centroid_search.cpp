#include "cluster/centroid_search.h"

#include <algorithm>

#include "core/checked.h"
#include "ops/exact_search.h"

namespace nearwise::cluster {
namespace {

// Rows at a time: work for all threads of a large machine, in a few megabytes.
constexpr std::size_t most_tile_rows = 65536;

struct Costs {
  std::uint64_t fixed_bytes = 0;
  std::uint64_t bytes_per_row = 0;  // of a tile
  std::size_t granule = 1;
};

bool has_assign(const Stream& stream) { return stream.context.backend.ops.assign != nullptr; }

// All centroids are one block.
Costs costs_of(const Stream& stream, const CentroidSearchArgs& args) {
  const KnnCostsArgs shape = {args.rows.dim(), 1, args.metric, args.rows.type(), args.centroid_type, false};
  if (has_assign(stream)) {
    const AssignCosts costs = stream.context.backend.ops.assign_costs(stream, shape);
    const std::uint64_t centroids = round_up<std::uint64_t>(args.most_centroids, costs.base_granule);
    const std::uint64_t per_centroid =
        costs.bytes_per_base_row + (args.distances ? costs.distance_bytes_per_base_row : 0);
    return {costs.fixed_bytes + centroids * per_centroid, costs.bytes_per_query, costs.query_granule};
  }
  const KnnCosts costs = stream.context.backend.ops.knn_costs(stream, shape);
  const std::uint64_t centroids = round_up<std::uint64_t>(args.most_centroids, costs.base_granule);
  // The answers of a tile are beside it.
  return {costs.fixed_bytes + centroids * costs.bytes_per_base_row + 2 * buffer_bytes(0, 1),
          costs.bytes_per_query + sizeof(Id) + sizeof(float), costs.query_granule};
}

// Alignment of the buffers of a prepared tile.
constexpr std::uint64_t tile_overhead = 512;

}  // namespace

std::uint64_t CentroidSearch::least_bytes(const Context& context, const CentroidSearchArgs& args) {
  const auto stream = open_stream(context);
  const Costs costs = costs_of(*stream, args);
  return costs.fixed_bytes + tile_overhead + costs.granule * costs.bytes_per_row;
}

CentroidSearch::CentroidSearch(const Context& context, const CentroidSearchArgs& args)
    : args_(args),
      stream_(open_stream(context)),
      // Of the rows, not of the centroids: those move.
      centre_(centre_of(*stream_, args.rows, args.metric)) {
  MemoryBudget& budget = *context.state().budget;
  const Costs costs = costs_of(*stream_, args);
  const std::uint64_t available = budget.available();
  const std::uint64_t spare = available - std::min(available, costs.fixed_bytes + tile_overhead);
  const std::uint64_t granules =
      std::min<std::uint64_t>(spare / costs.bytes_per_row, most_tile_rows) / costs.granule;
  tile_ = std::min<std::size_t>(std::max<std::size_t>(1, granules) * costs.granule,
                                std::max<std::size_t>(1, args.rows.rows()));
  if (!has_assign(*stream_)) {
    tile_ids_ = Buffer<Id>(budget, tile_);
    tile_distances_ = Buffer<float>(budget, tile_);
    return;
  }
  const std::uint64_t tiles = divide_up(args.rows.rows(), tile_);
  const std::uint64_t all =
      (tiles * round_up(tile_, costs.granule)) * costs.bytes_per_row + tiles * tile_overhead;
  keep_ = all <= spare;
}

std::unique_ptr<PreparedRows> CentroidSearch::prepare(const RowsView& rows, RowsRole role,
                                                      ElementType against, std::size_t first_row) {
  return dispatch(&Ops::prepare_rows, "prepare_rows", *stream_,
                  PrepareArgs{.rows = rows,
                              .role = role,
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

void CentroidSearch::search(const RowsView& tile, const PreparedRows& prepared, const RowsView& centroids,
                            const PreparedRows& block, std::span<std::uint32_t> ids,
                            std::span<float> distances, ProgressMeter* progress) {
  const auto found = dispatch(&Ops::start_top_k, "start_top_k", *stream_,
                              TopKArgs{prepared, tile, centroids.rows(), 1, args_.metric});
  dispatch(&Ops::knn_block, "knn_block", *stream_,
           KnnBlockArgs{.queries = prepared,
                        .block = block,
                        .found = *found,
                        .base = centroids,
                        .first_row = 0,
                        .block_rows = centroids.rows(),
                        .centre = centre_,
                        .progress = progress});
  dispatch(&Ops::finish_top_k, "finish_top_k", *stream_,
           FinishTopKArgs{
               *found, 0, {tile_ids_.data(), tile.rows(), 1}, {tile_distances_.data(), tile.rows(), 1}});
  std::transform(tile_ids_.data(), tile_ids_.data() + tile.rows(), ids.begin(),
                 [](Id id) { return static_cast<std::uint32_t>(id); });
  if (!distances.empty()) std::copy_n(tile_distances_.data(), tile.rows(), distances.data());
}

void CentroidSearch::nearest(const RowsView& centroids, std::span<std::uint32_t> ids,
                             std::span<float> distances, ProgressMeter* progress) {
  const auto block = prepare(centroids, RowsRole::base, args_.rows.type(), 0);
  for (std::size_t first = 0; first < args_.rows.rows(); first += tile_) {
    const RowsView tile = tile_of(first);
    const std::size_t index = first / tile_;
    std::unique_ptr<PreparedRows> prepared;
    if (index >= kept_.size()) prepared = prepare_tile(first);
    if (keep_ && prepared != nullptr) kept_.push_back(std::move(prepared));
    const PreparedRows& rows = keep_ ? *kept_[index] : *prepared;
    const auto own_ids = ids.subspan(first, tile.rows());
    const auto own_distances = distances.empty() ? distances : distances.subspan(first, tile.rows());
    if (has_assign(*stream_))
      assign(tile, rows, centroids, *block, own_ids, own_distances, progress);
    else
      search(tile, rows, centroids, *block, own_ids, own_distances, progress);
  }
}

}  // namespace nearwise::cluster

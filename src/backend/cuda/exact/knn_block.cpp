// Blocked exact search: cuBLAS multiplies a tile of queries by a tile of base rows, bias included, and the
// tile's best scores are merged into the lists. Scores are written once and read once.
#include <algorithm>

#include "backend/cuda/device/blas.h"
#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/tiling.h"
#include "backend/cuda/rows/top_k_collector.h"
#include "backend/cuda/tuning/exact_search.h"
#include "core/checked.h"
#include "core/progress.h"

namespace nearwise::gpu {
namespace {

// Large tiles keep the device busy; score rows much longer than the lists make merging cheap. With few
// queries tiles are longer, as far as their scores stay in the L2 cache of a large GPU: fewer launches.
constexpr TileLimits limits = {.max = {4096, 65536}, .min_rows = 256};
constexpr std::size_t cached_scores = (16 << 20) / sizeof(float);

TileLimits limits_for(std::size_t queries) {
  TileLimits chosen = limits;
  chosen.max.rows = std::max(limits.max.rows, cached_scores / std::max<std::size_t>(1, queries));
  return chosen;
}

std::uint64_t bytes_of(const Tiling& tiling, std::size_t length) {
  return device_bytes(tiling.queries * tiling.rows, sizeof(float)) +
         device_bytes(RunningTopK::workspace_bytes(tiling.queries, tiling.rows, length), 1);
}

std::uint64_t min_bytes(std::size_t length) { return bytes_of({1, limits.min_rows}, length); }

// Memory reserved for packing the next block concurrently: the block itself and a staging piece, or a quarter
// of the rest.
std::uint64_t next_block_bytes(const CudaStream& stream, const KnnBlockArgs& args, std::size_t row_bytes) {
  if (args.next_rows == 0) return 0;
  const std::uint64_t block = device_bytes(args.next_rows, row_bytes);
  const std::uint64_t available = stream.budget().available();
  const std::uint64_t share = (available - std::min(available, block)) / 4;
  const std::size_t element_bytes = element_size(args.base.type());
  const std::uint64_t piece =
      std::min<std::uint64_t>(tuning::staging_piece_bytes, args.next_rows * args.base.dim() * element_bytes);
  return block + std::max(packing_bytes(args.base.dim(), element_bytes), std::min(piece, share));
}

// Free device memory, less 10 % for others.
std::uint64_t free_bytes(const CudaStream& stream) {
  const DeviceScope scope(stream.ordinal());
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "querying free memory");
  return free / 10 * 9;
}

}  // namespace

KnnCosts knn_costs(const Stream& stream, const KnnCostsArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  if (args.k > max_k)
    fail(ErrorCode::unsupported, "exact search: k on a CUDA device must be at most {}, got {}", max_k,
         args.k);
  const Encoding encoding = encoding_of(cuda);
  const std::size_t width = packed_width(args.metric, args.dim, encoding);
  // A block is scanned while the next is packed.
  const std::uint64_t working_bytes = std::max(
      finishing_bytes(args, encoding),
      min_bytes(TopKCollector::list_length(args.k, encoding)) +
          packing_bytes(args.dim, std::max(element_size(args.query_type), element_size(args.base_type))));
  constexpr std::uint64_t rounding = 16 * 256;  // alignment of the buffers that live through a search
  return {.bytes_per_query = PackedRows::bytes_per_row(RowsRole::queries, width, encoding) +
                             TopKCollector::bytes_per_query(args.k, encoding),
          .bytes_per_base_row = PackedRows::bytes_per_row(RowsRole::base, width, encoding),
          .fixed_bytes = rounding + min_blas_bytes + working_bytes,
          .useful_bytes = tuning::target_working_bytes,
          .query_granule = 1,
          .base_granule = 128,
          .blocks_at_once = 2,
          .form = width * 4 + static_cast<std::size_t>(encoding),
          .whole_device = true,
          .device_bytes = free_bytes(cuda)};
}

std::unique_ptr<Collector> start_top_k(Stream& stream, const TopKArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  return std::make_unique<TopKCollector>(cuda, args);
}

void knn_block(Stream& stream, const KnnBlockArgs& args) {
  CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  auto& top_k = static_cast<TopKCollector&>(args.found);
  const auto& queries = static_cast<const PackedRows&>(args.queries);
  const auto& block = static_cast<const PackedRows&>(args.block);
  // The previous block is scanned after this, and its owner may free it.
  if (top_k.tile) cuda.synchronize(exact_search);
  top_k.tile.reset();
  top_k.base = args.base;
  top_k.scanned_rows += args.block_rows;
  top_k.longest = longer(top_k.longest, block.longest);
  // If one row is so long that scores have no error bound, all rows will be evaluated instead.
  if (queries.rows > 0 && args.block_rows > 0 && ScoreBound::holds_for({}, top_k.longest)) {
    const std::size_t length = top_k.scores.length();
    const std::uint64_t reserved = next_block_bytes(cuda, args, block.row_bytes());
    const TileLimits tiles_at_most = limits_for(queries.rows);
    const Blas& blas = cuda.blas(std::min(queries.rows, tiles_at_most.max.queries) *
                                     std::min(args.block_rows, tiles_at_most.max.rows) * sizeof(float),
                                 reserved);
    top_k.tile = with_working_memory(
        cuda, min_bytes(length), tuning::target_working_bytes, reserved, [&](std::uint64_t bytes) {
          const Tiling tiling =
              choose_tiling(tiles_at_most, {queries.rows, args.block_rows}, bytes,
                            [&](const Tiling& candidate) { return bytes_of(candidate, length); });
          return ScoreTile(cuda, tiling.queries, tiling.rows, length);
        });
    ScoreTile& tile = *top_k.tile;
    const std::size_t tiles = divide_up(args.block_rows, tile.rows);
    for (std::size_t i = 0; i < tiles; ++i) {
      const std::size_t first_row = args.block_rows * i / tiles;
      const std::size_t rows = args.block_rows * (i + 1) / tiles - first_row;
      for (std::size_t first = 0; first < queries.rows; first += tile.queries) {
        cuda.context.cancel.check();
        const std::size_t count = std::min(tile.queries, queries.rows - first);
        blas.negated_products(cuda, queries.row(first), count, block.row(first_row), rows, block.width,
                              tile.scores.data());
        top_k.scores.add(cuda, {tile.scores.data(), count, rows, args.first_row + first_row}, first,
                         tile.queries, tile.workspace.data());
      }
    }
  }
  if (args.progress != nullptr) args.progress->add(std::uint64_t{queries.rows} * args.block_rows);
}

}  // namespace nearwise::gpu

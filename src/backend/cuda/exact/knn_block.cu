// The blocked search: cuBLAS multiplies a tile of queries by a tile of base rows, bias included, and the best scores of
// the tile join the lists. Scores are written once and read once.
#include <algorithm>

#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/tiling.h"
#include "backend/cuda/rows/top_k.h"
#include "backend/cuda/tuning/exact_search.h"
#include "core/checked.h"
#include "core/progress.h"

namespace nearwise::gpu {
namespace {

// Large tiles keep the device busy; rows of scores far longer than the lists make joining cheap.
constexpr TileLimits limits = {.most = {4096, 65536}, .least_rows = 256};

std::uint64_t bytes_of(const Tiling& tiling, std::size_t length) {
  return device_bytes(tiling.queries * tiling.rows, sizeof(float)) +
         device_bytes(BestLists::workspace_bytes(tiling.queries, tiling.rows, length), 1);
}

std::uint64_t least_bytes(std::size_t length) { return bytes_of({1, limits.least_rows}, length); }

// What packing the next block takes meanwhile: the block itself, and a good piece of its rows or at least a share.
std::uint64_t bytes_of_next(const CudaStream& stream, const KnnBlockArgs& args, std::size_t row_bytes) {
  if (args.next_rows == 0) return 0;
  const std::uint64_t block = device_bytes(args.next_rows, row_bytes);
  const std::uint64_t available = stream.budget().available();
  const std::uint64_t share = (available - std::min(available, block)) / 4;
  const std::size_t element_bytes = element_size(args.base.type());
  const std::uint64_t piece =
      std::min<std::uint64_t>(tuning::staging_piece_bytes, args.next_rows * args.base.dim() * element_bytes);
  return block + std::max(packing_bytes(args.base.dim(), element_bytes), std::min(piece, share));
}

// Memory that the device has free, less what others may need.
std::uint64_t free_bytes(const CudaStream& stream) {
  const DeviceScope scope(stream.ordinal());
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for free memory");
  return free / 10 * 9;
}

}  // namespace

KnnCosts knn_costs(const Stream& stream, const KnnCostsArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  if (args.k > largest_k)
    fail(ErrorCode::unsupported, "exact search: k on a CUDA device must be at most {}, given {}", largest_k,
         args.k);
  const Encoding encoding = encoding_of(cuda);
  const std::size_t width = packed_width(args.metric, args.dim, encoding);
  // A block is scanned while the next is packed.
  const std::uint64_t least = std::max(
      finishing_bytes(args, encoding),
      least_bytes(TopK::list_length(args.k, encoding)) +
          packing_bytes(args.dim, std::max(element_size(args.query_type), element_size(args.base_type))));
  constexpr std::uint64_t rounding = 16 * 256;  // of the buffers that live through a search
  return {.bytes_per_query = PackedRows::bytes_per_row(RowsRole::queries, width, encoding) +
                             TopK::bytes_per_query(args.k, encoding),
          .bytes_per_base_row = PackedRows::bytes_per_row(RowsRole::base, width, encoding),
          .fixed_bytes = rounding + least,
          .useful_bytes = tuning::good_working_bytes,
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
  return std::make_unique<TopK>(cuda, args);
}

void knn_block(Stream& stream, const KnnBlockArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  auto& found = static_cast<TopK&>(args.found);
  const auto& queries = static_cast<const PackedRows&>(args.queries);
  const auto& block = static_cast<const PackedRows&>(args.block);
  // The block before this one has been scanned then, and whoever holds it may let it go.
  cuda.synchronize(exact_search);
  found.tile.reset();
  found.base = args.base;
  found.rows_shown += args.block_rows;
  found.longest = longer(found.longest, block.longest);
  // Where one row is so long that scores mean nothing, all rows will be evaluated.
  if (queries.rows > 0 && args.block_rows > 0 && ScoreBound::holds_for({}, found.longest)) {
    const std::size_t length = found.scores.length();
    const std::uint64_t kept = bytes_of_next(cuda, args, block.row_bytes());
    found.tile = with_working_memory(
        cuda, least_bytes(length), tuning::good_working_bytes, kept, [&](std::uint64_t bytes) {
          const Tiling tiling = choose_tiling(limits, {queries.rows, args.block_rows}, bytes,
                                              [&](const Tiling& tried) { return bytes_of(tried, length); });
          return ScoreTile(cuda, tiling.queries, tiling.rows, length);
        });
    ScoreTile& tile = *found.tile;
    const std::size_t tiles = divide_up(args.block_rows, tile.rows);
    for (std::size_t i = 0; i < tiles; ++i) {
      const std::size_t first_row = args.block_rows * i / tiles;
      const std::size_t rows = args.block_rows * (i + 1) / tiles - first_row;
      for (std::size_t first = 0; first < queries.rows; first += tile.queries) {
        cuda.context.cancel.check();
        const std::size_t count = std::min(tile.queries, queries.rows - first);
        found.blas.negated_products(cuda, queries.row(first), count, block.row(first_row), rows, block.width,
                                    tile.scores.data());
        found.scores.add(cuda, {tile.scores.data(), count, rows, args.first_row + first_row}, first,
                         tile.queries, tile.workspace.data());
      }
    }
  }
  if (args.progress != nullptr) args.progress->add(std::uint64_t{queries.rows} * args.block_rows);
}

}  // namespace nearwise::gpu

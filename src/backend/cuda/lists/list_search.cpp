// Search in inverted lists: tiles of lists are copied to the device once each and scanned for all queries
// that probe them, one tile of queries at a time. The tile's best scores are merged into the best so far; at
// the end their rows are evaluated (evaluate_candidates.h).
#include <algorithm>
#include <memory>
#include <vector>

#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/lists/evaluate_candidates.h"
#include "backend/cuda/lists/list_results.h"
#include "backend/cuda/lists/list_scorer.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/top_k_collector.h"
#include "backend/cuda/tuning/exact_search.h"
#include "backend/cuda/tuning/list_search.h"
#include "backend/cuda/warp/interleaved_codes.cuh"
#include "core/checked.h"

namespace nearwise::gpu {
namespace {

std::size_t length_for(std::size_t candidates) {
  return TopKCollector::list_length(candidates, Encoding::f32);
}

// Memory of a tile of queries in addition to the scorer's.
std::uint64_t score_bytes(std::size_t queries, std::size_t columns, std::size_t pairs, std::size_t length) {
  return device_bytes(queries * columns, sizeof(float)) +
         device_bytes(RunningTopK::workspace_bytes(queries, columns, length), 1) +
         device_bytes(pairs, sizeof(ScanPair)) + buffer_bytes(pairs, sizeof(ScanPair));
}

std::uint64_t scorer_bytes(const ScorerShape& shape, bool codes, std::size_t queries, std::size_t rows) {
  return codes ? code_scorer_bytes(shape, queries, rows) : row_scorer_bytes(shape, queries, rows);
}

// Memory of one query that probes a whole tile.
std::uint64_t min_query_bytes(const ScorerShape& shape, bool codes, std::size_t rows, std::size_t length) {
  const std::size_t pairs = rows / interleaved_rows;
  return (codes ? code_query_bytes(shape, 1, pairs) : row_query_bytes(shape, 1)) +
         score_bytes(1, rows, pairs, length);
}

// Scan of one tile of lists for tiles of queries.
class TileScan {
 public:
  TileScan(const CudaStream& stream, const ListTiles& tiles, const ListTile& tile, ListScorer& scorer,
           RunningTopK& best, std::size_t queries)
      : stream_(stream),
        tiles_(tiles),
        tile_(tile),
        scorer_(scorer),
        best_(best),
        queries_(queries),
        scores_(stream, queries * tile.columns, list_search_name),
        workspace_(stream, RunningTopK::workspace_bytes(queries, tile.columns, best.length()),
                   list_search_name),
        pairs_(stream, queries * tile.max_pairs, list_search_name),
        host_pairs_(stream.budget(), queries * tile.max_pairs) {
    scorer.start_queries(queries, queries * tile.max_pairs);
  }
  static std::uint64_t bytes(const ListTile& tile, const ListScorer& scorer, std::size_t length,
                             std::size_t queries) {
    return score_bytes(queries, tile.columns, queries * tile.max_pairs, length) +
           scorer.query_bytes(queries, queries * tile.max_pairs);
  }
  ~TileScan() {
    // Waits for the last copy of pairs, and before memory is reused.
    stream_.settle();
    scorer_.end_queries();
  }
  TileScan(const TileScan&) = delete;
  TileScan& operator=(const TileScan&) = delete;

  std::size_t tile_queries() const { return queries_; }

  void run(std::size_t first, std::size_t count) {
    const std::size_t pairs = collect_pairs(first, count);
    if (pairs == 0) return;
    copy_to_device(stream_, std::span<const ScanPair>(host_pairs_.data(), pairs), pairs_.data(),
                   list_search_name);
    // Columns past a query's last row get 3.4e38, which sorts after all valid scores and which selection
    // skips faster than a NaN.
    check(cudaMemsetAsync(scores_.data(), 0x7F, count * tile_.columns * sizeof(float), stream_.handle()),
          list_search_name);
    scorer_.load_queries(first, count);
    scorer_.scan({.pairs = pairs_.data(),
                  .count = pairs,
                  .max_rows = tile_.longest,
                  .scores = scores_.data(),
                  .columns = tile_.columns});
    best_.add(stream_, {scores_.data(), count, tile_.columns, static_cast<std::size_t>(tile_.first_position)},
              first, queries_, workspace_.data());
  }

 private:
  std::size_t collect_pairs(std::size_t first, std::size_t count) {
    const std::span<const ListPiece> pieces = tiles_.pieces(tile_);
    std::size_t pairs = 0;
    for (std::size_t i = 0; i < count; ++i)
      tiles_.for_each_piece(first + i, tile_, [&](std::size_t number, std::size_t column) {
        host_pairs_[pairs++] = {.query = static_cast<std::uint32_t>(i),
                                .column = static_cast<std::uint32_t>(column),
                                .first_row = pieces[number].first_row,
                                .rows = pieces[number].rows,
                                .list = static_cast<std::uint32_t>(number)};
      });
    return pairs;
  }

  const CudaStream& stream_;
  const ListTiles& tiles_;
  const ListTile& tile_;
  ListScorer& scorer_;
  RunningTopK& best_;
  const std::size_t queries_;
  DeviceBuffer<float> scores_;  // [queries, columns]
  DeviceBuffer<std::byte> workspace_;
  DeviceBuffer<ScanPair> pairs_;
  Buffer<ScanPair> host_pairs_;
};

// Lists split into tiles, and a scorer sized for one of them.
struct Scan {
  std::unique_ptr<ListScorer> scorer;
  std::unique_ptr<ListTiles> tiles;
};

class ListSearch {
 public:
  ListSearch(const CudaStream& stream, const ListSearchArgs& args)
      : stream_(stream),
        args_(args),
        shape_(scorer_shape(args)),
        codes_(scans_codes(args.codec, args.metric)),
        best_(stream, args.queries.rows(), length_for(args.candidates), list_search_name) {}

  void run() {
    const std::size_t rows = probed_rows();
    const Scan scan =
        with_working_memory(stream_, min_bytes(tuning::min_tile_rows), tuning::target_working_bytes, 0,
                            [&](std::uint64_t bytes) { return make_scan(choose_tile_rows(rows, bytes)); });
    for (const ListTile& tile : scan.tiles->tiles()) scan_tile(*scan.scorer, *scan.tiles, tile);
    evaluate_candidates(stream_, args_, *scan.tiles, *scan.scorer, best_);
  }

 private:
  // Rows in probed lists, padded to groups of 32.
  std::size_t probed_rows() const {
    std::vector<bool> probed(args_.lists.size());
    for (const Id list : args_.probes)
      if (list != no_id) probed[static_cast<std::size_t>(list)] = true;
    std::size_t rows = 0;
    for (std::size_t list = 0; list < probed.size(); ++list)
      if (probed[list]) rows += round_up<std::size_t>(args_.lists[list].rows, interleaved_rows);
    return std::max<std::size_t>(rows, interleaved_rows);
  }

  std::uint64_t min_bytes(std::size_t tile_rows) const {
    const EvaluationShape finish = {evaluated_shape(args_), best_.length(), args_.candidates,
                                    std::min(args_.k, args_.candidates)};
    return scorer_bytes(shape_, codes_, args_.queries.rows(), tile_rows) +
           buffer_bytes(args_.probes.size(), sizeof(std::uint32_t)) +
           std::max(min_query_bytes(shape_, codes_, tile_rows, best_.length()),
                    evaluate_candidates_bytes(finish));
  }

  // Leaves half of the memory to queries.
  std::size_t choose_tile_rows(std::size_t rows, std::uint64_t bytes) const {
    std::size_t chosen = tuning::min_tile_rows;
    for (std::size_t candidate = chosen; candidate <= tuning::max_tile_rows; candidate *= 2) {
      if (scorer_bytes(shape_, codes_, args_.queries.rows(), candidate) > bytes / 2 ||
          min_bytes(candidate) > bytes)
        break;
      chosen = candidate;
      if (candidate >= rows) break;
    }
    return std::min(chosen, rows);
  }

  Scan make_scan(std::size_t tile_rows) const {
    return {codes_ ? make_code_scorer(stream_, args_, tile_rows) : make_row_scorer(stream_, args_, tile_rows),
            std::make_unique<ListTiles>(stream_.budget(), args_, tile_rows)};
  }

  void scan_tile(ListScorer& scorer, const ListTiles& tiles, const ListTile& tile) {
    stream_.context.cancel.check();
    scorer.load_tile(tiles, tile);
    const std::size_t all = args_.queries.rows();
    const auto bytes_of = [&](std::size_t queries) {
      return TileScan::bytes(tile, scorer, best_.length(), queries);
    };
    const auto scan =
        with_working_memory(stream_, bytes_of(1), tuning::target_working_bytes, 0, [&](std::uint64_t bytes) {
          std::size_t queries = std::min(all, tuning::max_tile_queries);
          while (queries > 1 && bytes_of(queries) > bytes) queries = divide_up<std::size_t>(queries, 2);
          return std::make_unique<TileScan>(stream_, tiles, tile, scorer, best_, queries);
        });
    for (std::size_t first = 0; first < all; first += scan->tile_queries()) {
      stream_.context.cancel.check();
      scan->run(first, std::min(scan->tile_queries(), all - first));
    }
  }

  const CudaStream& stream_;
  const ListSearchArgs& args_;
  const ScorerShape shape_;
  const bool codes_;
  RunningTopK best_;
};

}  // namespace

// Codec and re-ranking are unknown here: returns the maximum over all of them.
ListSearchCosts list_search_costs(const Stream&, const ListSearchShape& shape) {
  if (shape.candidates > max_k)
    fail(ErrorCode::unsupported, "search: candidates on a CUDA device must be at most {}, got {}", max_k,
         shape.candidates);
  constexpr std::size_t tile_rows = tuning::min_tile_rows;
  const std::size_t length = length_for(shape.candidates);
  const auto scan_bytes = [&](const ScorerShape& scorer, bool codes) {
    return scorer_bytes(scorer, codes, 1, tile_rows) + min_query_bytes(scorer, codes, tile_rows, length);
  };
  const ScorerShape rows = {.dim = shape.dim,
                            .metric = shape.metric,
                            .code_bytes = shape.dim * element_size(shape.row_type),
                            .query_element = element_size(shape.query_type)};
  ScorerShape codes = rows;
  codes.additive = shape.codebooks != 0;
  codes.parts = codes.additive ? shape.codebooks : shape.dim;
  codes.code_bytes = codes.parts;
  const bool may_be_codes = shape.row_type == ElementType::f32;
  const std::uint64_t scanning =
      std::max(scan_bytes(rows, false), may_be_codes ? scan_bytes(codes, shape.metric != Metric::cosine) : 0);
  const std::uint64_t resident =
      std::max(scorer_bytes(rows, false, 1, tile_rows),
               may_be_codes ? scorer_bytes(codes, shape.metric != Metric::cosine, 1, tile_rows) : 0);
  const EvaluationShape finish = {
      {shape.dim, shape.dim * element_size(shape.query_type), shape.dim * sizeof(float)},
      length,
      shape.candidates,
      shape.candidates};
  // Re-ranking that keeps few of many candidates may split them into parts.
  const std::uint64_t parts = shape.candidates * 32;
  constexpr std::uint64_t rounding = 16 * 256;  // alignment of the buffers that live through a search
  return {.bytes_per_query =
              length * (sizeof(float) + sizeof(Id)) + sizeof(Lengths) + shape.probes * sizeof(std::uint32_t),
          .fixed_bytes = rounding + std::max(scanning, resident + evaluate_candidates_bytes(finish) + parts) +
                         ListTiles::bytes(shape.lists, 0, 0, shape.rows, tile_rows)};
}

void list_search(Stream& stream, const ListSearchArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  if (args.queries.rows() == 0) return;
  ListSearch(cuda, args).run();
}

}  // namespace nearwise::gpu

// Nearest centroid of every row: the two best scores by a reduction, and exact search if they are too close.
//
// A query is certified, as on the CPU, if the error bound separates its second score from the best; no
// distance is evaluated then. The others are gathered in batches and searched with k = 1, and so are all
// queries if distances are requested.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backend/cuda/device/blas.h"
#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/host_results.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/tiling.h"
#include "backend/cuda/rows/top_k_collector.h"
#include "backend/cuda/tuning/exact_search.h"
#include "backend/cuda/tuning/selection.h"
#include "core/checked.h"
#include "core/progress.h"

namespace nearwise::gpu {
namespace {

constexpr std::size_t two = 2;
static_assert(two <= tuning::max_reduced_k);

constexpr TileLimits limits = {.max = {4096, 65536}, .min_rows = 256};

// Queries per exact search.
constexpr std::size_t max_searched_queries = 4096;

std::uint64_t bytes_of(const Tiling& tiling) {
  const std::size_t entries = tiling.queries * two;
  return device_bytes(tiling.queries * tiling.rows, sizeof(float)) +
         device_bytes(RunningTopK::workspace_bytes(tiling.queries, tiling.rows, two), 1) +
         RunningTopK::bytes(tiling.queries, two) + buffer_bytes(entries, sizeof(float)) +
         buffer_bytes(entries, sizeof(Id));
}

std::uint64_t min_scan_bytes() { return bytes_of({1, limits.min_rows}); }

// Memory of a query in an exact search: its row and result in addition to the search itself.
std::uint64_t searched_query_bytes(const KnnCosts& search, const KnnCostsArgs& args) {
  return search.bytes_per_query + args.dim * element_size(args.query_type) + sizeof(Id) + sizeof(float);
}

// Alignment of rows and results.
constexpr std::uint64_t search_overhead = 1024;

// The two best scores of a tile of queries.
class TwoBest {
 public:
  TwoBest(const CudaStream& stream, const Tiling& tiling)
      : stream_(stream),
        tile_(stream, tiling.queries, tiling.rows, two),
        lists_(stream, tiling.queries, two, exact_search),
        scores_(stream.budget(), tiling.queries * two),
        rows_(stream.budget(), tiling.queries * two) {}

  std::size_t tile_queries() const { return tile_.queries; }
  std::uint64_t score_bytes() const { return tile_.scores.size() * sizeof(float); }

  void find(const Blas& blas, const PackedRows& queries, std::size_t first, std::size_t count,
            const PackedRows& block) {
    lists_.clear(stream_);
    const std::size_t tiles = divide_up(block.rows, tile_.rows);
    for (std::size_t i = 0; i < tiles; ++i) {
      stream_.context.cancel.check();
      const std::size_t first_row = block.rows * i / tiles;
      const std::size_t rows = block.rows * (i + 1) / tiles - first_row;
      blas.negated_products(stream_, queries.row(first), count, block.row(first_row), rows, block.width,
                            tile_.scores.data());
      lists_.add(stream_, {tile_.scores.data(), count, rows, first_row}, 0, tile_.queries,
                 tile_.workspace.data());
    }
    HostResults copies(stream_);
    copies.add(lists_.values(0), scores_.span().first(count * two), exact_search);
    copies.add(lists_.rows(0), rows_.span().first(count * two), exact_search);
    copies.finish(exact_search);
  }

  float best(std::size_t query) const { return scores_[query * two]; }
  float second(std::size_t query) const { return scores_[query * two + 1]; }
  std::uint32_t row(std::size_t query) const { return static_cast<std::uint32_t>(rows_[query * two]); }

 private:
  const CudaStream& stream_;
  ScoreTile tile_;
  RunningTopK lists_;
  Buffer<float> scores_;  // [queries, 2] best first
  Buffer<Id> rows_;
};

class Assignment {
 public:
  Assignment(CudaStream& stream, const AssignArgs& args)
      : stream_(stream),
        args_(args),
        queries_(static_cast<const PackedRows&>(args.queries)),
        block_(static_cast<const PackedRows&>(args.block)),
        bound_(args.metric, products_of(block_.encoding), args.query_rows.dim()) {}

  void run() {
    std::vector<std::uint32_t> uncertified;
    if (block_.rows == 1 && args_.distances.empty())
      std::ranges::fill(args_.nearest, 0U);
    else if (args_.distances.empty() && ScoreBound::holds_for({}, block_.longest))
      uncertified = scan();
    else
      for (std::size_t query = 0; query < queries_.rows; ++query)
        uncertified.push_back(static_cast<std::uint32_t>(query));
    for (std::size_t done = 0; done < uncertified.size();)
      done += search(
          std::span(uncertified).subspan(done, std::min(max_searched_queries, uncertified.size() - done)));
    if (args_.progress != nullptr) args_.progress->add(std::uint64_t{queries_.rows} * block_.rows);
  }

 private:
  // Writes the nearest rows of queries certified by two scores and returns the others.
  std::vector<std::uint32_t> scan() {
    TwoBest best = with_working_memory(
        stream_, min_scan_bytes(), tuning::target_working_bytes, 0, [&](std::uint64_t bytes) {
          return TwoBest(stream_, choose_tiling(limits, {queries_.rows, block_.rows}, bytes, bytes_of));
        });
    const Blas& blas = stream_.blas(best.score_bytes());
    std::vector<std::uint32_t> uncertified;
    for (std::size_t first = 0; first < queries_.rows; first += best.tile_queries()) {
      const std::size_t count = std::min(best.tile_queries(), queries_.rows - first);
      best.find(blas, queries_, first, count, block_);
      for (std::size_t i = 0; i < count; ++i) {
        if (is_certified(queries_.lengths[first + i], best.best(i), best.second(i)))
          args_.nearest[first + i] = best.row(i);
        else
          uncertified.push_back(static_cast<std::uint32_t>(first + i));
      }
    }
    return uncertified;
  }

  bool is_certified(const Lengths& query, float best, float second) const {
    if (!ScoreBound::holds_for(query, block_.longest)) return false;
    const double limit = bound_.limit_from_score(query, block_.longest, best);
    return second > bound_.cutoff(query, block_.longest, limit);
  }

  // Exact search for the given queries; returns how many of them fitted into memory.
  std::size_t search(std::span<const std::uint32_t> uncertified) {
    for (std::size_t count = fitting_queries(uncertified.size());; count = divide_up<std::size_t>(count, 2)) {
      try {
        search_batch(uncertified.first(count));
        return count;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::out_of_memory || count == 1) throw;
      }
    }
  }

  // Leaves half of the available memory to the search itself.
  std::size_t fitting_queries(std::size_t count) const {
    const KnnCostsArgs shape = {args_.query_rows.dim(), 1, args_.metric, args_.query_rows.type(),
                                args_.base.type()};
    const KnnCosts costs = knn_costs(stream_, shape);
    const std::uint64_t available = std::min(stream_.budget().available(), costs.device_bytes);
    const std::uint64_t spare = available - std::min(available, costs.fixed_bytes + search_overhead);
    return std::clamp<std::uint64_t>(spare / 2 / searched_query_bytes(costs, shape), 1, count);
  }

  void search_batch(std::span<const std::uint32_t> uncertified) {
    const std::size_t row_bytes = args_.query_rows.dim() * element_size(args_.query_rows.type());
    const bool on_host = args_.query_rows.place().kind == DeviceKind::cpu;
    Buffer<std::byte> on_host_rows(stream_.budget(), on_host ? uncertified.size() * row_bytes : 0);
    DeviceBuffer<std::byte> on_device_rows(stream_, on_host ? 0 : uncertified.size() * row_bytes,
                                           exact_search);
    for (std::size_t i = 0; i < uncertified.size(); ++i) {
      if (on_host)
        std::memcpy(on_host_rows.data() + i * row_bytes, args_.query_rows.row(uncertified[i]), row_bytes);
      else
        copy_rows_to_device(stream_, args_.query_rows.slice(uncertified[i], 1),
                            on_device_rows.data() + i * row_bytes);
    }
    // The queries are packed on another stream.
    if (!on_host) stream_.synchronize(exact_search);
    const RowsView rows(on_host ? on_host_rows.data() : on_device_rows.data(), args_.query_rows.type(),
                        uncertified.size(), args_.query_rows.dim(), row_bytes, args_.query_rows.place());
    const auto packed = prepare_rows(stream_, {.rows = rows,
                                               .role = RowsRole::queries,
                                               .type = rows.type(),
                                               .against = args_.base.type(),
                                               .metric = args_.metric,
                                               .centre = args_.centre});
    const auto top_k = start_top_k(stream_, {*packed, rows, block_.rows, 1, args_.metric});
    knn_block(stream_, {.queries = *packed,
                        .block = block_,
                        .found = *top_k,
                        .base = args_.base,
                        .block_rows = block_.rows,
                        .centre = args_.centre});
    Buffer<Id> ids(stream_.budget(), uncertified.size());
    Buffer<float> distances(stream_.budget(), uncertified.size());
    finish_top_k(stream_,
                 {*top_k, 0, {ids.data(), uncertified.size(), 1}, {distances.data(), uncertified.size(), 1}});
    for (std::size_t i = 0; i < uncertified.size(); ++i) {
      args_.nearest[uncertified[i]] = static_cast<std::uint32_t>(ids[i]);
      if (!args_.distances.empty()) args_.distances[uncertified[i]] = distances[i];
    }
  }

  CudaStream& stream_;
  const AssignArgs& args_;
  const PackedRows& queries_;
  const PackedRows& block_;
  const ScoreBound bound_;
};

}  // namespace

AssignCosts assign_costs(const Stream& stream, const KnnCostsArgs& args) {
  const Encoding encoding = encoding_of(cuda_stream(stream));
  const KnnCosts search = knn_costs(stream, args);
  const std::size_t width = packed_width(args.metric, args.dim, encoding);
  return {.bytes_per_query = PackedRows::bytes_per_row(RowsRole::queries, width, encoding),
          .bytes_per_base_row = search.bytes_per_base_row,
          .fixed_bytes = std::max(min_blas_bytes + min_scan_bytes(),
                                  search.fixed_bytes + search_overhead + searched_query_bytes(search, args)),
          .useful_bytes = search.useful_bytes,
          .query_granule = search.query_granule,
          .base_granule = search.base_granule,
          .device_bytes = search.device_bytes};
}

void assign(Stream& stream, const AssignArgs& args) {
  CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  Assignment(cuda, args).run();
}

}  // namespace nearwise::gpu

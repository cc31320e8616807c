// The nearest row for every query: the two best scores by a reduction, and exact search where they are too close.
//
// A query is decided when the bound puts its second score beyond the best, as on the CPU: no distance is evaluated then.
// The others are gathered in batches and searched for one neighbour, and so are all where distances are wanted: a search
// evaluates those that it reports.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backend/cuda/device/blas.h"
#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/tiling.h"
#include "backend/cuda/rows/top_k.h"
#include "backend/cuda/tuning/exact_search.h"
#include "backend/cuda/tuning/selection.h"
#include "core/checked.h"
#include "core/progress.h"

namespace nearwise::gpu {
namespace {

constexpr std::size_t two = 2;
static_assert(two <= tuning::most_reduced);

constexpr TileLimits limits = {.most = {4096, 65536}, .least_rows = 256};

// Queries searched at a time.
constexpr std::size_t most_searched = 4096;

std::uint64_t bytes_of(const Tiling& tiling) {
  const std::size_t entries = tiling.queries * two;
  return device_bytes(tiling.queries * tiling.rows, sizeof(float)) +
         device_bytes(BestLists::workspace_bytes(tiling.queries, tiling.rows, two), 1) +
         BestLists::bytes(tiling.queries, two) + buffer_bytes(entries, sizeof(float)) +
         buffer_bytes(entries, sizeof(Id));
}

std::uint64_t least_scan_bytes() { return bytes_of({1, limits.least_rows}); }

// What a query takes that is searched: its row again, and its answer, beside the search's own.
std::uint64_t searched_query_bytes(const KnnCosts& search, const KnnCostsArgs& args) {
  return search.bytes_per_query + args.dim * element_size(args.query_type) + sizeof(Id) + sizeof(float);
}

// Alignment of rows and answers.
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
    copy_to_host(stream_, lists_.values(0), scores_.span().first(count * two), exact_search);
    copy_to_host(stream_, lists_.rows(0), rows_.span().first(count * two), exact_search);
    stream_.synchronize(exact_search);
  }

  float best(std::size_t query) const { return scores_[query * two]; }
  float second(std::size_t query) const { return scores_[query * two + 1]; }
  std::uint32_t row(std::size_t query) const { return static_cast<std::uint32_t>(rows_[query * two]); }

 private:
  const CudaStream& stream_;
  ScoreTile tile_;
  BestLists lists_;
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
    std::vector<std::uint32_t> open;
    if (block_.rows == 1 && args_.distances.empty())
      std::ranges::fill(args_.nearest, 0U);
    else if (args_.distances.empty() && ScoreBound::holds_for({}, block_.longest))
      open = scan();
    else
      for (std::size_t query = 0; query < queries_.rows; ++query)
        open.push_back(static_cast<std::uint32_t>(query));
    for (std::size_t done = 0; done < open.size();)
      done += search(std::span(open).subspan(done, std::min(most_searched, open.size() - done)));
    if (args_.progress != nullptr) args_.progress->add(std::uint64_t{queries_.rows} * block_.rows);
  }

 private:
  // Writes the nearest rows of those queries that two scores decide, and returns the others.
  std::vector<std::uint32_t> scan() {
    TwoBest found = with_working_memory(
        stream_, least_scan_bytes(), tuning::good_working_bytes, 0, [&](std::uint64_t bytes) {
          return TwoBest(stream_, choose_tiling(limits, {queries_.rows, block_.rows}, bytes, bytes_of));
        });
    std::vector<std::uint32_t> open;
    for (std::size_t first = 0; first < queries_.rows; first += found.tile_queries()) {
      const std::size_t count = std::min(found.tile_queries(), queries_.rows - first);
      found.find(stream_.blas(), queries_, first, count, block_);
      for (std::size_t i = 0; i < count; ++i) {
        if (is_decided(queries_.lengths[first + i], found.best(i), found.second(i)))
          args_.nearest[first + i] = found.row(i);
        else
          open.push_back(static_cast<std::uint32_t>(first + i));
      }
    }
    return open;
  }

  bool is_decided(const Lengths& query, float best, float second) const {
    if (!ScoreBound::holds_for(query, block_.longest)) return false;
    const double limit = bound_.limit_from_score(query, block_.longest, best);
    return second > bound_.cutoff(query, block_.longest, limit);
  }

  // Exact search for queries that lie anywhere; returns how many of them memory allowed.
  std::size_t search(std::span<const std::uint32_t> open) {
    for (std::size_t count = fitting(open.size());; count = divide_up<std::size_t>(count, 2)) {
      try {
        search_batch(open.first(count));
        return count;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::out_of_memory || count == 1) throw;
      }
    }
  }

  // Half of what is there is for the search itself.
  std::size_t fitting(std::size_t count) const {
    const KnnCostsArgs shape = {args_.query_rows.dim(), 1,    args_.metric, args_.query_rows.type(),
                                args_.base.type(),      false};
    const KnnCosts costs = knn_costs(stream_, shape);
    const std::uint64_t available = std::min(stream_.budget().available(), costs.device_bytes);
    const std::uint64_t spare = available - std::min(available, costs.fixed_bytes + search_overhead);
    return std::clamp<std::uint64_t>(spare / 2 / searched_query_bytes(costs, shape), 1, count);
  }

  void search_batch(std::span<const std::uint32_t> open) {
    const std::size_t row_bytes = args_.query_rows.dim() * element_size(args_.query_rows.type());
    const bool on_host = args_.query_rows.place().kind == DeviceKind::cpu;
    Buffer<std::byte> on_host_rows(stream_.budget(), on_host ? open.size() * row_bytes : 0);
    DeviceBuffer<std::byte> on_device_rows(stream_, on_host ? 0 : open.size() * row_bytes, exact_search);
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (on_host)
        std::memcpy(on_host_rows.data() + i * row_bytes, args_.query_rows.row(open[i]), row_bytes);
      else
        copy_rows_to_device(stream_, args_.query_rows.slice(open[i], 1),
                            on_device_rows.data() + i * row_bytes);
    }
    // They are packed on another stream.
    if (!on_host) stream_.synchronize(exact_search);
    const RowsView rows(on_host ? on_host_rows.data() : on_device_rows.data(), args_.query_rows.type(),
                        open.size(), args_.query_rows.dim(), row_bytes, args_.query_rows.place());
    const auto packed = prepare_rows(stream_, {.rows = rows,
                                               .role = RowsRole::queries,
                                               .against = args_.base.type(),
                                               .metric = args_.metric,
                                               .centre = args_.centre});
    const auto found = start_top_k(stream_, {*packed, rows, block_.rows, 1, args_.metric});
    knn_block(stream_, {.queries = *packed,
                        .block = block_,
                        .found = *found,
                        .base = args_.base,
                        .block_rows = block_.rows,
                        .centre = args_.centre});
    Buffer<Id> ids(stream_.budget(), open.size());
    Buffer<float> distances(stream_.budget(), open.size());
    finish_top_k(stream_, {*found, 0, {ids.data(), open.size(), 1}, {distances.data(), open.size(), 1}});
    for (std::size_t i = 0; i < open.size(); ++i) {
      args_.nearest[open[i]] = static_cast<std::uint32_t>(ids[i]);
      if (!args_.distances.empty()) args_.distances[open[i]] = distances[i];
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
          .fixed_bytes = std::max(least_scan_bytes(),
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

// Scores of uncompressed or decoded rows, packed in f32 as in exact search.
#include <optional>

#include "backend/cuda/device/host_results.h"
#include "backend/cuda/kernels/rows/pack_rows.h"
#include "backend/cuda/lists/list_scorer.h"
#include "backend/cuda/rows/packed_rows.h"
#include "core/distance.h"
#include "core/math/score_bound.h"

namespace nearwise::gpu {
namespace {

constexpr Encoding encoding = Encoding::f32;

class RowScorer : public ListScorer {
 public:
  RowScorer(const CudaStream& stream, const ListSearchArgs& args, std::size_t tile_rows)
      : stream_(stream),
        args_(args),
        centre_(is_euclidean(args.metric) ? args.centre : std::span<const float>()),
        width_(packed_width(args.metric, args.codec.dim, encoding)),
        bound_(args.metric, products_of(encoding), args.codec.dim),
        lengths_(stream.budget(), args.queries.rows()),
        codes_(stream, args, tile_rows),
        decoded_(stream, args.codec.is_flat() ? 0 : tile_rows * args.codec.dim, list_search_name),
        packed_(stream, tile_rows * width_, list_search_name),
        device_centre_(stream, centre_.size(), list_search_name),
        summary_(stream, 1, list_search_name) {
    if (!centre_.empty()) copy_to_device(stream, centre_, device_centre_.data(), list_search_name);
  }

  void load_tile(const ListTiles& tiles, const ListTile& tile) override {
    codes_.load(tiles, tile);
    PackTask task = pack_task(Bias::half_norm);
    task.rows = codes_.codes();
    task.stride_bytes = args_.codec.code_bytes;
    if (!args_.codec.is_flat()) {
      launch_decode_rows(stream_.handle(), codes_.rows(), decoded_.data());
      task.rows = reinterpret_cast<const std::byte*>(decoded_.data());
      task.stride_bytes = args_.codec.dim * sizeof(float);
    }
    task.count = codes_.row_count();
    task.out = reinterpret_cast<std::byte*>(packed_.data());
    longest_ = longer(longest_, pack(args_.codec.type, task).longest);
  }

  std::uint64_t query_bytes(std::size_t queries, std::size_t) const override {
    return row_query_bytes(scorer_shape(args_), queries);
  }
  void start_queries(std::size_t queries, std::size_t) override {
    queries_.emplace(stream_, args_, queries, width_);
  }
  void end_queries() override { queries_.reset(); }

  void load_queries(std::size_t first, std::size_t count) override {
    copy_rows_to_device(stream_, args_.queries.slice(first, count), queries_->raw.data());
    PackTask task = pack_task(Bias::minus_one);
    task.rows = queries_->raw.data();
    task.stride_bytes = args_.codec.dim * element_size(args_.queries.type());
    task.count = count;
    task.out = reinterpret_cast<std::byte*>(queries_->packed.data());
    task.lengths = queries_->lengths.data();
    const PackResult packed = pack(args_.queries.type(), task);
    if (packed.first_bad_row != count) refuse_row(RowsRole::queries, first + packed.first_bad_row);
    const auto lengths = lengths_.span().subspan(first, count);
    fetch(stream_, queries_->lengths.data(), lengths, list_search_name);
    for (Lengths& length : lengths) length.residual *= norm_margin;
  }

  void scan(const ScanTask& task) override {
    launch_scan_packed(stream_.handle(), task,
                       {.queries = queries_->packed.data(),
                        .rows = packed_.data(),
                        .width = static_cast<std::uint32_t>(width_)});
  }

  bool holds_for(std::size_t query) const override {
    return ScoreBound::holds_for(lengths_[query], longest_);
  }
  double limit_from_score(std::size_t query, float score) const override {
    return bound_.limit_from_score(lengths_[query], longest_, score);
  }
  double limit_from_key(float key) const override { return bound_.limit_from_key(key); }
  float cutoff(std::size_t query, double limit) const override {
    return bound_.cutoff(lengths_[query], longest_, limit);
  }

 private:
  struct Queries {
    Queries(const CudaStream& stream, const ListSearchArgs& args, std::size_t queries, std::size_t width)
        : raw(stream, queries * args.codec.dim * element_size(args.queries.type()), list_search_name),
          packed(stream, queries * width, list_search_name),
          lengths(stream, queries, list_search_name) {}

    DeviceBuffer<std::byte> raw;
    DeviceBuffer<float> packed;
    DeviceBuffer<Lengths> lengths;
  };

  struct PackResult {
    Lengths longest;
    std::size_t first_bad_row = 0;
  };

  PackTask pack_task(Bias bias) const {
    return {.dim = static_cast<std::uint32_t>(args_.codec.dim),
            .width = static_cast<std::uint32_t>(width_),
            .centre = device_centre_.data(),
            .normalise = args_.metric == Metric::cosine,
            .bias = is_euclidean(args_.metric) ? bias : Bias::none};
  }

  PackResult pack(ElementType type, PackTask task) {
    PackedSummary summary = {.first_bad_row = task.count};
    copy_to_device(stream_, std::span<const PackedSummary>(&summary, 1), summary_.data(), list_search_name);
    task.summary = summary_.data();
    launch_pack_rows(stream_.handle(), type, encoding, task);
    fetch(stream_, summary_.data(), std::span(&summary, 1), list_search_name);
    return {longest_of(summary), summary.first_bad_row};
  }

  const CudaStream& stream_;
  const ListSearchArgs& args_;
  const std::span<const float> centre_;
  const std::size_t width_;
  const ScoreBound bound_;
  Buffer<Lengths> lengths_;  // of queries
  Lengths longest_;          // upper bound over all tiles
  ListTileCodes codes_;
  DeviceBuffer<float> decoded_;
  DeviceBuffer<float> packed_;
  DeviceBuffer<float> device_centre_;
  DeviceBuffer<PackedSummary> summary_;
  std::optional<Queries> queries_;
};

}  // namespace

std::uint64_t row_scorer_bytes(const ScorerShape& shape, std::size_t queries, std::size_t tile_rows) {
  const std::size_t width = packed_width(shape.metric, shape.dim, encoding);
  return buffer_bytes(queries, sizeof(Lengths)) + ListTileCodes::bytes(shape, tile_rows) +
         device_bytes(shape.parts == 0 ? 0 : tile_rows * shape.dim, sizeof(float)) +
         device_bytes(tile_rows * width, sizeof(float)) + device_bytes(shape.dim, sizeof(float)) +
         device_bytes(1, sizeof(PackedSummary));
}

std::uint64_t row_query_bytes(const ScorerShape& shape, std::size_t queries) {
  const std::size_t width = packed_width(shape.metric, shape.dim, encoding);
  return device_bytes(queries * shape.dim, shape.query_element) +
         device_bytes(queries * width, sizeof(float)) + device_bytes(queries, sizeof(Lengths));
}

std::unique_ptr<ListScorer> make_row_scorer(const CudaStream& stream, const ListSearchArgs& args,
                                            std::size_t tile_rows) {
  return std::make_unique<RowScorer>(stream, args, tile_rows);
}

}  // namespace nearwise::gpu

// Scores of codes: lookup tables per query, and a scan that sums their entries.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "backend/cuda/kernels/codes/part_tables.h"
#include "backend/cuda/kernels/rows/widen_rows.h"
#include "backend/cuda/lists/code_bound.h"
#include "backend/cuda/lists/list_scorer.h"
#include "backend/cuda/rows/packed_rows.h"
#include "backend/cuda/tuning/list_search.h"
#include "core/checked.h"
#include "core/convert.h"
#include "core/distance.h"

namespace nearwise::gpu {

Buffer<double> squared_norms(const CudaStream& stream, const RowsView& queries,
                             std::span<const float> centre) {
  Buffer<double> squares(stream.budget(), queries.rows());
  constexpr std::size_t task_queries = 64;
  stream.context.threads->for_each(divide_up(queries.rows(), task_queries), [&](std::size_t task) {
    std::vector<double> row(queries.dim());
    const std::size_t end = std::min(queries.rows(), (task + 1) * task_queries);
    for (std::size_t query = task * task_queries; query < end; ++query) {
      row_to_double(queries, query, row.data());
      squares[query] = 0;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const double centred = row[i] - (centre.empty() ? 0.0 : static_cast<double>(centre[i]));
        squares[query] += centred * centred;
      }
    }
  });
  for (std::size_t query = 0; query < queries.rows(); ++query)
    if (!std::isfinite(squares[query])) refuse_row(RowsRole::queries, query);
  return squares;
}

namespace {

class CodeScorer : public ListScorer {
 public:
  CodeScorer(const CudaStream& stream, const ListSearchArgs& args, std::size_t tile_rows)
      : stream_(stream),
        args_(args),
        centre_(is_euclidean(args.metric) ? args.centre : std::span<const float>()),
        squares_(squared_norms(stream, args.queries, centre_)),
        bound_(args.codec, args.metric, centre_, squares_.span()),
        codes_(stream, args, tile_rows),
        interleaved_(stream, tile_rows * words_of_code(args.codec.code_bytes), list_search_name),
        half_norms_(stream, is_euclidean(args.metric) ? tile_rows : 0, list_search_name),
        device_centre_(stream, centre_.size(), list_search_name) {
    if (!centre_.empty()) copy_to_device(stream, centre_, device_centre_.data(), list_search_name);
  }

  void load_tile(const ListTiles& tiles, const ListTile& tile) override {
    codes_.load(tiles, tile);
    launch_interleave_codes(stream_.handle(), codes_.rows(), words_per_code(), interleaved_.data());
    if (is_euclidean(args_.metric))
      launch_half_norms(stream_.handle(), codes_.rows(), device_centre_.data(), half_norms_.data());
  }

  std::uint64_t query_bytes(std::size_t queries, std::size_t pairs) const override {
    return code_query_bytes(scorer_shape(args_), queries, pairs);
  }
  void start_queries(std::size_t queries, std::size_t pairs) override {
    queries_.emplace(stream_, args_, queries, pairs, entries());
  }
  void end_queries() override { queries_.reset(); }

  void load_queries(std::size_t first, std::size_t count) override {
    copy_rows_to_device(stream_, args_.queries.slice(first, count), queries_->raw.data());
    launch_widen_rows(stream_.handle(), args_.queries.type(), queries_->raw.data(), count, args_.codec.dim,
                      queries_->rows.data());
    launch_part_tables(stream_.handle(), TableEntry::negated_product,
                       {.queries = queries_->rows.data(),
                        .count = count,
                        .centre = device_centre_.data(),
                        .books = codes_.books(),
                        .tables = queries_->tables.data()});
  }

  void scan(const ScanTask& task) override {
    launch_pair_offsets(stream_.handle(), task,
                        {.queries = queries_->rows.data(),
                         .centroids = codes_.rows().centroids,
                         .centre = device_centre_.data(),
                         .dim = codes_.books().dim,
                         .offsets = queries_->offsets.data()});
    launch_scan_codes(stream_.handle(), task,
                      {.codes = interleaved_.data(),
                       .half_norms = half_norms_.data(),
                       .tables = queries_->tables.data(),
                       .offsets = queries_->offsets.data(),
                       .parts = codes_.books().parts,
                       .words_per_code = words_per_code(),
                       .bits = args_.codec.bits,
                       .pairs_per_block = static_cast<std::uint32_t>(std::clamp<std::size_t>(
                           task.count / tuning::target_scan_blocks, 1, tuning::max_pairs_per_block))});
  }

  bool holds_for(std::size_t query) const override { return bound_.holds_for(query); }
  double limit_from_score(std::size_t query, float score) const override {
    return bound_.limit_from_score(query, score);
  }
  double limit_from_key(float key) const override { return bound_.limit_from_key(key); }
  float cutoff(std::size_t query, double limit) const override { return bound_.cutoff(query, limit); }

 private:
  struct Queries {
    Queries(const CudaStream& stream, const ListSearchArgs& args, std::size_t queries, std::size_t pairs,
            std::size_t entries)
        : raw(stream, queries * args.codec.dim * element_size(args.queries.type()), list_search_name),
          rows(stream, queries * args.codec.dim, list_search_name),
          tables(stream, queries * entries, list_search_name),
          offsets(stream, pairs, list_search_name) {}

    DeviceBuffer<std::byte> raw;
    DeviceBuffer<float> rows;
    DeviceBuffer<float> tables;   // [queries, entries]
    DeviceBuffer<float> offsets;  // [pairs]
  };

  std::uint32_t words_per_code() const {
    return static_cast<std::uint32_t>(words_of_code(args_.codec.code_bytes));
  }
  std::size_t entries() const { return args_.codec.parts() << args_.codec.bits; }

  const CudaStream& stream_;
  const ListSearchArgs& args_;
  const std::span<const float> centre_;
  const Buffer<double> squares_;
  const CodeBound bound_;
  ListTileCodes codes_;
  DeviceBuffer<std::uint32_t> interleaved_;
  DeviceBuffer<float> half_norms_;
  DeviceBuffer<float> device_centre_;
  std::optional<Queries> queries_;
};

}  // namespace

std::uint64_t code_scorer_bytes(const ScorerShape& shape, std::size_t queries, std::size_t tile_rows) {
  return buffer_bytes(queries, sizeof(double)) + ListTileCodes::bytes(shape, tile_rows) +
         device_bytes(tile_rows * words_of_code(shape.code_bytes), sizeof(std::uint32_t)) +
         device_bytes(tile_rows, sizeof(float)) + device_bytes(shape.dim, sizeof(float));
}

std::uint64_t code_query_bytes(const ScorerShape& shape, std::size_t queries, std::size_t pairs) {
  return device_bytes(queries * shape.dim, shape.query_element) +
         device_bytes(queries * shape.dim, sizeof(float)) +
         device_bytes(queries * (shape.parts << shape.bits), sizeof(float)) +
         device_bytes(pairs, sizeof(float));
}

std::unique_ptr<ListScorer> make_code_scorer(const CudaStream& stream, const ListSearchArgs& args,
                                             std::size_t tile_rows) {
  return std::make_unique<CodeScorer>(stream, args, tile_rows);
}

}  // namespace nearwise::gpu

// Scores of rows in inverted lists on the device, and their error bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/kernels/codes/code_rows.h"
#include "backend/cuda/kernels/lists/scan_lists.h"
#include "backend/cuda/lists/list_tiles.h"
#include "backend/cuda/rows/device_codebooks.h"
#include "backend/ops.h"
#include "core/memory.h"

namespace nearwise::gpu {

inline constexpr const char* list_search_name = "list_search";  // in error messages

class ListScorer {
 public:
  virtual ~ListScorer() = default;

  // Copies the rows of a tile to the device.
  virtual void load_tile(const ListTiles& tiles, const ListTile& tile) = 0;
  // Copies a tile of queries, at most as many as start_queries() allocated.
  virtual void load_queries(std::size_t first, std::size_t count) = 0;
  // Allocates memory for queries and pairs; end_queries() frees it.
  virtual void start_queries(std::size_t queries, std::size_t pairs) = 0;
  virtual void end_queries() = 0;
  virtual std::uint64_t query_bytes(std::size_t queries, std::size_t pairs) const = 0;
  virtual void scan(const ScanTask& task) = 0;

  // Error bounds over all loaded tiles, as in ScoreBound.
  virtual bool holds_for(std::size_t query) const = 0;
  virtual double limit_from_score(std::size_t query, float score) const = 0;
  virtual double limit_from_key(float key) const = 0;
  virtual float cutoff(std::size_t query, double limit) const = 0;
};

// Codes are scanned with lookup tables. Uncompressed rows, and all rows for cosine, whose scores are
// quotients, are scanned as in exact search.
inline bool scans_codes(const ListCodec& codec, Metric metric) {
  return !codec.is_flat() && metric != Metric::cosine;
}

// |q - centre|^2 of every query, in f64. Refuses queries with NaN or infinity.
Buffer<double> squared_norms(const CudaStream& stream, const RowsView& queries,
                             std::span<const float> centre);

inline std::size_t words_of_code(std::size_t code_bytes) { return (code_bytes + 3) / 4; }

// Scorers for tiles of `tile_rows` rows, and their memory in addition to query_bytes().
std::unique_ptr<ListScorer> make_code_scorer(const CudaStream& stream, const ListSearchArgs& args,
                                             std::size_t tile_rows);
std::unique_ptr<ListScorer> make_row_scorer(const CudaStream& stream, const ListSearchArgs& args,
                                            std::size_t tile_rows);

struct ScorerShape {
  std::size_t dim = 0;
  Metric metric = Metric::sqeuclidean;
  std::size_t code_bytes = 0;
  std::size_t query_element = 4;  // bytes of an element
  // Of codes; 0 for uncompressed rows.
  std::size_t parts = 0;
  unsigned bits = 8;
  bool additive = false;

  std::size_t book_size() const { return parts == 0 ? 0 : (additive ? parts * dim : dim) << bits; }
};
ScorerShape scorer_shape(const ListSearchArgs& args);
std::uint64_t code_scorer_bytes(const ScorerShape& shape, std::size_t queries, std::size_t tile_rows);
std::uint64_t code_query_bytes(const ScorerShape& shape, std::size_t queries, std::size_t pairs);
std::uint64_t row_scorer_bytes(const ScorerShape& shape, std::size_t queries, std::size_t tile_rows);
std::uint64_t row_query_bytes(const ScorerShape& shape, std::size_t queries);

// Codes of a tile on the device and the codebooks that decode them.
class ListTileCodes {
 public:
  ListTileCodes(const CudaStream& stream, const ListSearchArgs& args, std::size_t tile_rows);
  static std::uint64_t bytes(const ScorerShape& shape, std::size_t tile_rows);

  void load(const ListTiles& tiles, const ListTile& tile);

  // Of the loaded tile.
  CodeRowsTask rows() const;
  const std::byte* codes() const { return codes_.data(); }
  std::size_t row_count() const { return rows_; }
  const DeviceCodebooks& books() const { return books_.view(); }

 private:
  const CudaStream& stream_;
  const ListSearchArgs& args_;
  Buffer<std::byte> host_codes_;  // [tile_rows, code_bytes]
  Buffer<std::uint32_t> host_lists_;
  Buffer<float> host_centroids_;
  DeviceBuffer<std::byte> codes_;
  DeviceBuffer<std::uint32_t> lists_;  // [tile_rows / 32] index of the piece
  DeviceBuffer<float> centroids_;      // [pieces, dim]
  CodebooksOnDevice books_;
  std::size_t rows_ = 0;
};

}  // namespace nearwise::gpu

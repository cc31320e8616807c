// Exhaustive search in additive codes. For each tile of queries: tables, then for each tile of codes the
// scores, which are sums of table entries (kernels/lists/scan_lists.h, with the tile as one list), and their
// merge into the best so far (rows/running_top_k.h). Tables and scores stay on the device: only the k best
// come to the host.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/host_results.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/kernels/codes/code_rows.h"
#include "backend/cuda/kernels/lists/scan_lists.h"
#include "backend/cuda/kernels/rows/row_products.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/row_copy.h"
#include "backend/cuda/rows/row_tiles.h"
#include "backend/cuda/rows/running_top_k.h"
#include "backend/cuda/rows/tiling.h"
#include "backend/cuda/tuning/exact_search.h"
#include "backend/cuda/tuning/list_search.h"
#include "backend/cuda/warp/interleaved_codes.cuh"
#include "core/checked.h"
#include "core/progress.h"

namespace nearwise::gpu {
namespace {

constexpr const char* operation = "additive_search";
constexpr std::size_t codewords = AdditiveCodebooks::codebook_size;

constexpr TileLimits limits = {.max = {tuning::max_tile_queries, tuning::max_tile_rows},
                               .min_rows = tuning::min_tile_rows};

std::size_t table_size(const AdditiveSearchShape& shape) { return shape.code_bytes * codewords; }
std::size_t columns_of(const AdditiveSearchShape& shape) { return table_size(shape) - codewords; }
std::size_t words_of(const AdditiveSearchShape& shape) { return divide_up<std::size_t>(shape.code_bytes, 4); }
std::size_t padded(std::size_t rows) { return round_up<std::size_t>(rows, interleaved_rows); }

std::uint64_t bytes_of(const AdditiveSearchShape& shape, const Tiling& tiling) {
  return device_bytes(checked_multiply(shape.dim, columns_of(shape), operation), sizeof(float)) +
         device_bytes(columns_of(shape), sizeof(double)) +
         RowTiles::bytes(shape.dim, shape.element_bytes, tiling.queries) +
         device_bytes(tiling.queries * table_size(shape), sizeof(float)) +
         device_bytes(tiling.queries * codewords, sizeof(float)) +
         buffer_bytes(tiling.queries * codewords, sizeof(float)) +
         device_bytes(padded(tiling.rows) * shape.code_bytes, 1) +
         device_bytes(padded(tiling.rows) * words_of(shape), sizeof(std::uint32_t)) +
         device_bytes(tiling.queries, sizeof(ScanPair)) + device_bytes(tiling.queries, sizeof(float)) +
         device_bytes(tiling.queries * tiling.rows, sizeof(float)) +
         RunningTopK::bytes(tiling.queries, shape.k) +
         device_bytes(RunningTopK::workspace_bytes(tiling.queries, tiling.rows, shape.k), 1);
}

Tiling min_tiling(const AdditiveSearchShape& shape) { return {1, std::min(shape.rows, limits.min_rows)}; }

class AdditiveScan {
 public:
  AdditiveScan(const CudaStream& stream, const AdditiveSearchArgs& args, const Tiling& tiling)
      : stream_(stream),
        args_(args),
        shape_(args.shape()),
        tiling_(tiling),
        columns_(stream, shape_.dim * columns_of(shape_), operation),
        zeros_(stream, columns_of(shape_), operation),
        queries_(stream, args.queries, tiling.queries, operation),
        tables_(stream, tiling.queries * table_size(shape_), operation),
        norm_entries_(stream, tiling.queries * codewords, operation),
        host_norm_entries_(stream.budget(), tiling.queries * codewords),
        codes_(stream, padded(tiling.rows) * shape_.code_bytes, operation),
        interleaved_(stream, padded(tiling.rows) * words_of(shape_), operation),
        pairs_(stream, tiling.queries, operation),
        offsets_(stream, tiling.queries, operation),
        scores_(stream, tiling.queries * tiling.rows, operation),
        best_(stream, tiling.queries, shape_.k, operation, args.order),
        workspace_(stream, RunningTopK::workspace_bytes(tiling.queries, tiling.rows, shape_.k), operation) {}
  // After an error, copies may still write memory that the caller is about to free.
  ~AdditiveScan() { stream_.settle(); }
  AdditiveScan(const AdditiveScan&) = delete;
  AdditiveScan& operator=(const AdditiveScan&) = delete;

  void run() {
    clear(zeros_);
    clear(offsets_);
    // The padding after the last code is interleaved too.
    clear(codes_);
    send_rows(stream_, columns_.data(), args_.columns.data(), args_.columns.stride(), args_.columns.cols(),
              args_.columns.rows(), operation);
    const std::size_t tiles = divide_up(shape_.rows, tiling_.rows);
    for (std::size_t query = 0; query < args_.queries.rows(); query += tiling_.queries) {
      const std::size_t queries = std::min(tiling_.queries, args_.queries.rows() - query);
      fill_tables(query, queries);
      best_.clear(stream_);
      for (std::size_t tile = 0; tile < tiles; ++tile) {
        stream_.context.cancel.check();
        const std::size_t first = shape_.rows * tile / tiles;
        const std::size_t rows = shape_.rows * (tile + 1) / tiles - first;
        load_codes(first, rows);
        scan(queries, rows);
        best_.add(stream_, {scores_.data(), queries, rows, first}, 0, tiling_.queries, workspace_.data());
        if (args_.progress != nullptr) args_.progress->add(std::uint64_t{queries} * rows);
      }
      fetch_best(query, queries);
    }
  }

 private:
  template <typename T>
  void clear(DeviceBuffer<T>& buffer) {
    check(cudaMemsetAsync(buffer.data(), 0, buffer.size() * sizeof(T), stream_.handle()), operation);
  }

  void fill_tables(std::size_t first, std::size_t queries) {
    const std::size_t columns = columns_of(shape_);
    launch_rotate_rows(stream_.handle(), {.rows = queries_.load(first, queries),
                                          .count = static_cast<std::uint32_t>(queries),
                                          .dim = static_cast<std::uint32_t>(shape_.dim),
                                          .columns = columns_.data(),
                                          .offset = zeros_.data(),
                                          .width = static_cast<std::uint32_t>(columns),
                                          .rotated = tables_.data(),
                                          .rotated_stride = table_size(shape_)});
    for (std::size_t query = 0; query < queries; ++query)
      for (std::size_t level = 0; level < codewords; ++level)
        host_norm_entries_[query * codewords + level] = args_.norm_entry(first + query, level);
    copy_to_device(stream_, std::span<const float>(host_norm_entries_.data(), queries * codewords),
                   norm_entries_.data(), operation);
    copy_rows(stream_.handle(), tables_.data() + columns, table_size(shape_), norm_entries_.data(), codewords,
              codewords, queries, cudaMemcpyDeviceToDevice, operation);
  }

  void load_codes(std::size_t first, std::size_t rows) {
    // With one tile of codes, all tiles of queries share it.
    if (rows == loaded_rows_ && first == loaded_first_) return;
    loaded_first_ = first;
    loaded_rows_ = rows;
    send_rows(stream_, codes_.data(), args_.codes.row(first).data(), args_.codes.stride(), shape_.code_bytes,
              rows, operation);
    launch_interleave_codes(stream_.handle(),
                            {.codes = codes_.data(),
                             .rows = static_cast<std::uint32_t>(padded(rows)),
                             .code_bytes = static_cast<std::uint32_t>(shape_.code_bytes),
                             .books = {}},
                            static_cast<std::uint32_t>(words_of(shape_)), interleaved_.data());
  }

  void scan(std::size_t queries, std::size_t rows) {
    std::vector<ScanPair> pairs(queries);
    for (std::size_t i = 0; i < queries; ++i)
      pairs[i] = {.query = static_cast<std::uint32_t>(i), .rows = static_cast<std::uint32_t>(rows)};
    copy_to_device(stream_, std::span<const ScanPair>(pairs), pairs_.data(), operation);
    launch_scan_codes(stream_.handle(),
                      {.pairs = pairs_.data(),
                       .count = queries,
                       .max_rows = static_cast<std::uint32_t>(rows),
                       .scores = scores_.data(),
                       .columns = rows},
                      {.codes = interleaved_.data(),
                       .tables = tables_.data(),
                       .offsets = offsets_.data(),
                       .parts = static_cast<std::uint32_t>(shape_.code_bytes),
                       .words_per_code = static_cast<std::uint32_t>(words_of(shape_)),
                       .bits = 8,
                       .pairs_per_block = 1});
  }

  void fetch_best(std::size_t first, std::size_t queries) {
    HostResults results(stream_);
    const auto add = [&]<typename T>(const T* from, const MatrixView<T>& to) {
      // Rows that end with padding are copied one by one.
      const std::size_t pieces = to.stride() == shape_.k ? 1 : queries;
      const std::size_t size = queries / pieces * shape_.k;
      for (std::size_t piece = 0; piece < pieces; ++piece)
        results.add(from + piece * size, std::span<T>(&to(first + piece, 0), size), operation);
    };
    add(best_.values(0), args_.best);
    add(best_.rows(0), args_.ids);
    results.finish(operation);
  }

  const CudaStream& stream_;
  const AdditiveSearchArgs& args_;
  const AdditiveSearchShape shape_;
  const Tiling tiling_;
  std::size_t loaded_first_ = 0;  // codes on the device
  std::size_t loaded_rows_ = 0;
  DeviceBuffer<float> columns_;  // [dim, columns]
  DeviceBuffer<double> zeros_;   // [columns]
  RowTiles queries_;
  DeviceBuffer<float> tables_;        // [queries, bytes of a code, 256]
  DeviceBuffer<float> norm_entries_;  // [queries, 256]
  Buffer<float> host_norm_entries_;
  DeviceBuffer<std::uint8_t> codes_;
  DeviceBuffer<std::uint32_t> interleaved_;
  DeviceBuffer<ScanPair> pairs_;
  DeviceBuffer<float> offsets_;  // zeros
  DeviceBuffer<float> scores_;   // [queries, rows]
  RunningTopK best_;
  DeviceBuffer<std::byte> workspace_;
};

}  // namespace

std::uint64_t additive_search_bytes(const Stream&, const AdditiveSearchShape& shape) {
  if (shape.k > max_k)
    fail(ErrorCode::unsupported, "search: k on a CUDA device must be at most {}, got {}", max_k, shape.k);
  return bytes_of(shape, min_tiling(shape));
}

void additive_search(Stream& stream, const AdditiveSearchArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  const AdditiveSearchShape shape = args.shape();
  const auto scan = with_working_memory(
      cuda, bytes_of(shape, min_tiling(shape)), tuning::target_working_bytes, 0, [&](std::uint64_t bytes) {
        return std::make_unique<AdditiveScan>(
            cuda, args,
            choose_tiling(limits, {args.queries.rows(), shape.rows}, bytes,
                          [&](const Tiling& tiling) { return bytes_of(shape, tiling); }));
      });
  scan->run();
}

}  // namespace nearwise::gpu

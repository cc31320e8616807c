// Sums of table entries of all codes: the scan of lists (kernels/lists/scan_lists.h) with all codes of a tile
// as one list. Tables, codes and sums are on the host and are copied in tiles.
#include <algorithm>
#include <memory>
#include <vector>

#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/kernels/codes/code_rows.h"
#include "backend/cuda/kernels/lists/scan_lists.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/row_copy.h"
#include "backend/cuda/tuning/exact_search.h"
#include "backend/cuda/tuning/list_search.h"
#include "backend/cuda/warp/interleaved_codes.cuh"
#include "core/checked.h"

namespace nearwise::gpu {
namespace {

constexpr const char* operation = "code_sums";

struct SumsTile {
  std::size_t queries = 0;
  std::size_t rows = 0;  // a multiple of interleaved_rows
};

std::size_t words_of_code(std::size_t code_bytes) { return divide_up<std::size_t>(code_bytes, 4); }

class Summing {
 public:
  Summing(const CudaStream& stream, const CodeSumsArgs& args, const SumsTile& tile)
      : stream_(stream),
        args_(args),
        tile_(tile),
        tables_(stream, tile.queries * args.tables.cols(), operation),
        pairs_(stream, tile.queries, operation),
        offsets_(stream, tile.queries, operation),
        codes_(stream, tile.rows * args.codes.cols(), operation),
        interleaved_(stream, tile.rows * words_of_code(args.codes.cols()), operation),
        sums_(stream, tile.queries * tile.rows, operation) {}
  static std::uint64_t bytes(const CodeSumsArgs& args, const SumsTile& tile) {
    return device_bytes(tile.queries * args.tables.cols(), sizeof(float)) +
           device_bytes(tile.queries, sizeof(ScanPair)) + device_bytes(tile.queries, sizeof(float)) +
           device_bytes(tile.rows * args.codes.cols(), 1) +
           device_bytes(tile.rows * words_of_code(args.codes.cols()), sizeof(std::uint32_t)) +
           device_bytes(tile.queries * tile.rows, sizeof(float));
  }

  void run() {
    check(cudaMemsetAsync(offsets_.data(), 0, tile_.queries * sizeof(float), stream_.handle()), operation);
    // Zeroes the padding after the last row, which is interleaved too.
    check(cudaMemsetAsync(codes_.data(), 0, codes_.size(), stream_.handle()), operation);
    for (std::size_t first = 0; first < args_.codes.rows(); first += tile_.rows) {
      const std::size_t rows = std::min(tile_.rows, args_.codes.rows() - first);
      load_codes(first, rows);
      for (std::size_t query = 0; query < args_.tables.rows(); query += tile_.queries) {
        stream_.context.cancel.check();
        const std::size_t queries = std::min(tile_.queries, args_.tables.rows() - query);
        scan(query, queries, rows);
        copy_rows(stream_.handle(), &args_.sums(query, first), args_.sums.stride(), sums_.data(), rows, rows,
                  queries, cudaMemcpyDeviceToHost, operation);
        stream_.synchronize(operation);
      }
    }
  }

 private:
  void load_codes(std::size_t first, std::size_t rows) {
    const std::size_t bytes = args_.codes.cols();
    send_rows(stream_, codes_.data(), args_.codes.row(first).data(), args_.codes.stride(), bytes, rows,
              operation);
    launch_interleave_codes(
        stream_.handle(),
        {.codes = codes_.data(),
         .rows = static_cast<std::uint32_t>(round_up<std::size_t>(rows, interleaved_rows)),
         .code_bytes = static_cast<std::uint32_t>(bytes),
         .books = {}},
        static_cast<std::uint32_t>(words_of_code(bytes)), interleaved_.data());
  }

  void scan(std::size_t first, std::size_t queries, std::size_t rows) {
    send_rows(stream_, tables_.data(), args_.tables.row(first).data(), args_.tables.stride(),
              args_.tables.cols(), queries, operation);
    std::vector<ScanPair> pairs(queries);
    for (std::size_t i = 0; i < queries; ++i)
      pairs[i] = {.query = static_cast<std::uint32_t>(i), .rows = static_cast<std::uint32_t>(rows)};
    copy_to_device(stream_, std::span<const ScanPair>(pairs), pairs_.data(), operation);
    launch_scan_codes(stream_.handle(),
                      {.pairs = pairs_.data(),
                       .count = queries,
                       .max_rows = static_cast<std::uint32_t>(rows),
                       .scores = sums_.data(),
                       .columns = rows},
                      {.codes = interleaved_.data(),
                       .tables = tables_.data(),
                       .offsets = offsets_.data(),
                       .parts = static_cast<std::uint32_t>(args_.codes.cols()),
                       .words_per_code = static_cast<std::uint32_t>(words_of_code(args_.codes.cols())),
                       .bits = 8,
                       .pairs_per_block = 1});
  }

  const CudaStream& stream_;
  const CodeSumsArgs& args_;
  const SumsTile tile_;
  DeviceBuffer<float> tables_;
  DeviceBuffer<ScanPair> pairs_;
  DeviceBuffer<float> offsets_;  // zeros
  DeviceBuffer<std::uint8_t> codes_;
  DeviceBuffer<std::uint32_t> interleaved_;
  DeviceBuffer<float> sums_;
};

// Shrinks rows first: tables are small compared with the sums.
SumsTile choose_tile(const CodeSumsArgs& args, std::uint64_t bytes) {
  SumsTile tile = {
      std::min(args.tables.rows(), tuning::max_tile_queries),
      round_up<std::size_t>(std::min(args.codes.rows(), tuning::max_tile_rows), interleaved_rows)};
  while (tile.rows > tuning::min_tile_rows && Summing::bytes(args, tile) > bytes)
    tile.rows = round_up<std::size_t>(tile.rows / 2, interleaved_rows);
  while (tile.queries > 1 && Summing::bytes(args, tile) > bytes)
    tile.queries = divide_up<std::size_t>(tile.queries, 2);
  while (tile.rows > interleaved_rows && Summing::bytes(args, tile) > bytes)
    tile.rows = round_up<std::size_t>(tile.rows / 2, interleaved_rows);
  return tile;
}

}  // namespace

// Has no bytes function: its minimum, tables of one query and 32 codes, is less than what the rotation before
// it takes.
void code_sums(Stream& stream, const CodeSumsArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  if (args.tables.rows() == 0 || args.codes.rows() == 0) return;
  const auto summing = with_working_memory(
      cuda, Summing::bytes(args, {1, interleaved_rows}), tuning::target_working_bytes, 0,
      [&](std::uint64_t bytes) { return std::make_unique<Summing>(cuda, args, choose_tile(args, bytes)); });
  summing->run();
}

}  // namespace nearwise::gpu

// Product quantization: codes of rows and lookup tables of queries. Rows are copied in tiles, codewords once.
#include <algorithm>
#include <memory>

#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/kernels/codes/nearest_codewords.h"
#include "backend/cuda/kernels/codes/part_tables.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/device_codebooks.h"
#include "backend/cuda/rows/row_copy.h"
#include "backend/cuda/rows/row_tiles.h"
#include "backend/cuda/tuning/exact_search.h"
#include "core/progress.h"

namespace nearwise::gpu {
namespace {

constexpr const char* codes_name = "part_codes";
constexpr const char* tables_name = "part_tables";

// Codewords, a tile of rows, and the tile's results.
template <typename T>
struct Coding {
  Coding(const CudaStream& stream, const RowsView& rows, const Codebooks& codebooks, std::size_t width,
         std::size_t tile_rows, const char* operation)
      : books(stream, codebooks, operation),
        tiles(stream, rows, tile_rows, operation),
        results(stream, tile_rows * width, operation) {}
  static std::uint64_t bytes(const Codebooks& codebooks, std::size_t element_bytes, std::size_t width,
                             std::size_t tile_rows) {
    return CodebooksOnDevice::bytes(codebooks) + RowTiles::bytes(codebooks.dim, element_bytes, tile_rows) +
           device_bytes(tile_rows * width, sizeof(T));
  }

  CodebooksOnDevice books;
  RowTiles tiles;
  DeviceBuffer<T> results;  // [tile rows, width]
};

// Calls launch(coding, device rows, count) for every tile of rows and copies its results to the host.
template <typename T, typename Launch>
void encode_tiles(const CudaStream& stream, const RowsView& rows, const Codebooks& codebooks,
                  const MatrixView<T>& out, ProgressMeter* progress, const char* operation,
                  const Launch& launch) {
  if (rows.rows() == 0) return;
  const std::size_t width = out.cols();
  const auto bytes_of = [&](std::size_t tile_rows) {
    return Coding<T>::bytes(codebooks, element_size(rows.type()), width, tile_rows);
  };
  const auto coding =
      with_working_memory(stream, bytes_of(1), tuning::target_working_bytes, 0, [&](std::uint64_t bytes) {
        return std::make_unique<Coding<T>>(stream, rows, codebooks, width,
                                           choose_tile_rows(rows.rows(), bytes, bytes_of), operation);
      });
  for (std::size_t first = 0; first < rows.rows(); first += coding->tiles.tile_rows()) {
    stream.context.cancel.check();
    const std::size_t count = std::min(coding->tiles.tile_rows(), rows.rows() - first);
    launch(*coding, coding->tiles.load(first, count), count);
    copy_rows(stream.handle(), out.row(first).data(), out.stride(), coding->results.data(), width, width,
              count, cudaMemcpyDeviceToHost, operation);
    stream.synchronize(operation);
    if (progress != nullptr) progress->add(count);
  }
}

}  // namespace

std::uint64_t part_codes_bytes(const Stream&, const Codebooks& codebooks) {
  return Coding<std::uint8_t>::bytes(codebooks, sizeof(float), codebooks.code_bytes(),
                                     tuning::min_coded_rows);
}

void part_codes(Stream& stream, const PartCodesArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  encode_tiles(cuda, args.rows, args.codebooks, args.codes, args.progress, codes_name,
               [&](Coding<std::uint8_t>& coding, const float* rows, std::size_t count) {
                 launch_nearest_codewords(
                     cuda.handle(), {.rows = rows,
                                     .count = static_cast<std::uint32_t>(count),
                                     .books = coding.books.view(),
                                     .code_bytes = static_cast<std::uint32_t>(args.codebooks.code_bytes()),
                                     .codes = coding.results.data()});
               });
}

std::uint64_t part_tables_bytes(const Stream&, const Codebooks& codebooks) {
  return Coding<float>::bytes(codebooks, sizeof(float), codebooks.parts * codebooks.count(), 1);
}

void part_tables(Stream& stream, const PartTablesArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  const TableEntry entry = args.metric == Metric::inner_product ? TableEntry::product : TableEntry::square;
  encode_tiles(cuda, args.queries, args.codebooks, args.tables, args.progress, tables_name,
               [&](Coding<float>& coding, const float* queries, std::size_t count) {
                 launch_part_tables(cuda.handle(), entry,
                                    {.queries = queries,
                                     .count = count,
                                     .books = coding.books.view(),
                                     .tables = coding.results.data()});
               });
}

}  // namespace nearwise::gpu

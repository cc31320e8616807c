// Copies rows to the device in pieces and packs them there, on the second stream: a block of the base is
// copied and packed while the previous block is multiplied.
#include <algorithm>
#include <memory>

#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/host_results.h"
#include "backend/cuda/device/staging.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/kernels/rows/pack_rows.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/packed_rows.h"
#include "backend/cuda/rows/row_copy.h"
#include "backend/cuda/tuning/exact_search.h"
#include "core/checked.h"

namespace nearwise::gpu {
namespace {

std::size_t row_bytes_of(const RowsView& rows) { return rows.dim() * element_size(rows.type()); }
bool on_host(const RowsView& rows) { return rows.place().kind == DeviceKind::cpu; }
bool is_staged(const RowsView& rows) {
  return on_host(rows) && rows.rows() * row_bytes_of(rows) >= tuning::min_staged_bytes;
}

// If so much memory cannot be pinned, rows are copied through the stream's own, which is slower.
std::unique_ptr<Staging> make_staging(const CudaStream& stream) {
  try {
    return std::make_unique<Staging>(stream, exact_search);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    return nullptr;
  }
}

// Device memory for a piece of the original rows and its norms.
struct Piece {
  Piece(const CudaStream& stream, const PrepareArgs& args, std::size_t piece_rows)
      : rows(piece_rows),
        raw(stream, on_host(args.rows) ? rows * row_bytes_of(args.rows) : 0, exact_search),
        lengths(stream, args.role == RowsRole::queries ? rows : 0, exact_search),
        centre(stream, args.centre.size(), exact_search),
        summary(stream, 1, exact_search) {
    if (is_staged(args.rows)) staging = make_staging(stream);
  }

  std::size_t rows;
  DeviceBuffer<std::byte> raw;
  DeviceBuffer<Lengths> lengths;
  DeviceBuffer<float> centre;
  DeviceBuffer<PackedSummary> summary;
  std::unique_ptr<Staging> staging;
};

std::uint64_t piece_bytes(std::size_t dim, std::size_t row_bytes, std::size_t rows) {
  return device_bytes(rows, row_bytes) + device_bytes(rows, sizeof(Lengths)) +
         device_bytes(dim, sizeof(float)) + device_bytes(1, sizeof(PackedSummary));
}

Piece make_piece(const CudaStream& stream, const PrepareArgs& args) {
  const std::size_t dim = args.rows.dim();
  const std::size_t row_bytes = row_bytes_of(args.rows);
  return with_working_memory(stream, packing_bytes(dim, element_size(args.rows.type())),
                             tuning::staging_piece_bytes, 0, [&](std::uint64_t bytes) {
                               std::size_t rows = std::clamp<std::uint64_t>(
                                   bytes / (row_bytes + sizeof(Lengths)), 1, args.rows.rows());
                               while (rows > 1 && piece_bytes(dim, row_bytes, rows) > bytes)
                                 rows = divide_up<std::size_t>(rows, 2);
                               return Piece(stream, args, rows);
                             });
}

}  // namespace

std::uint64_t packing_bytes(std::size_t dim, std::size_t element_bytes) {
  return piece_bytes(dim, dim * element_bytes, 1);
}

void copy_rows_to_device(const CudaStream& stream, const RowsView& rows, std::byte* out) {
  const std::size_t row_bytes = row_bytes_of(rows);
  if (on_host(rows))
    send_rows(stream, out, rows.data(), rows.stride_bytes(), row_bytes, rows.rows(), exact_search);
  else
    copy_rows(stream.handle(), out, row_bytes, rows.data(), rows.stride_bytes(), row_bytes, rows.rows(),
              cudaMemcpyDeviceToDevice, exact_search);
}

void fetch_rows(Stream& stream, const RowsView& rows, std::byte* out) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  const std::size_t row_bytes = row_bytes_of(rows);
  copy_rows(cuda.handle(), out, row_bytes, rows.data(), rows.stride_bytes(), row_bytes, rows.rows(),
            cudaMemcpyDeviceToHost, "fetching rows");
  cuda.synchronize("fetching rows");
}

std::unique_ptr<PreparedRows> prepare_rows(Stream& stream, const PrepareArgs& args) {
  const CudaStream& cuda = cuda_stream(stream).second_stream();
  const DeviceScope scope(cuda.ordinal());
  const RowsView& rows = args.rows;
  const Encoding encoding = encoding_of(cuda);
  const std::size_t width = packed_width(args.metric, rows.dim(), encoding);
  auto packed = std::make_unique<PackedRows>(cuda, args.role, rows.rows(), width, encoding);
  if (rows.rows() == 0) return packed;
  Piece piece = make_piece(cuda, args);
  PackedSummary summary = {.first_bad_row = rows.rows()};
  copy_to_device(cuda, std::span<const PackedSummary>(&summary, 1), piece.summary.data(), exact_search);
  if (!args.centre.empty()) copy_to_device(cuda, args.centre, piece.centre.data(), exact_search);
  HostResults results(cuda);
  const bool queries = args.role == RowsRole::queries;
  PackTask task = {.dim = static_cast<std::uint32_t>(rows.dim()),
                   .width = static_cast<std::uint32_t>(width),
                   .centre = args.centre.empty() ? nullptr : piece.centre.data(),
                   .normalise = args.metric == Metric::cosine,
                   .bias = !is_euclidean(args.metric) ? Bias::none
                           : queries                  ? Bias::minus_one
                                                      : Bias::half_norm,
                   .lengths = piece.lengths.data(),
                   .summary = piece.summary.data()};
  for (std::size_t first = 0; first < rows.rows(); first += piece.rows) {
    cuda.context.cancel.check();
    const RowsView part = rows.slice(first, std::min(piece.rows, rows.rows() - first));
    task.rows = part.data();
    task.stride_bytes = part.stride_bytes();
    if (on_host(rows)) {
      if (piece.staging)
        piece.staging->send(part, piece.raw.data());
      else
        copy_rows_to_device(cuda, part, piece.raw.data());
      task.rows = piece.raw.data();
      task.stride_bytes = row_bytes_of(rows);
    }
    task.count = part.rows();
    task.first_row = first;
    task.out = packed->row(first);
    launch_pack_rows(cuda.handle(), rows.type(), encoding, task);
    if (queries)
      results.add(piece.lengths.data(), packed->lengths.span().subspan(first, part.rows()), exact_search);
  }
  results.add(piece.summary.data(), std::span(&summary, 1), exact_search);
  // Other streams may use the rows as soon as they are returned, and must have finished before the rows are
  // freed, which happens in the order of this stream.
  results.finish(exact_search);
  if (summary.first_bad_row != rows.rows()) refuse_row(args.role, args.first_row + summary.first_bad_row);
  packed->longest = longest_of(summary);
  for (std::size_t i = 0; i < packed->lengths.size(); ++i) packed->lengths[i].residual *= norm_margin;
  return packed;
}

}  // namespace nearwise::gpu

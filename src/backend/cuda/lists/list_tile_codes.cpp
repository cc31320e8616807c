// Gathers codes of a tile on the host, with the context's threads, and copies them to the device.
#include <algorithm>
#include <cstring>

#include "backend/cuda/lists/list_scorer.h"
#include "backend/cuda/warp/interleaved_codes.cuh"
#include "core/checked.h"

namespace nearwise::gpu {
namespace {

// Every piece starts a group of 32 rows.
std::size_t max_pieces(std::size_t tile_rows) { return tile_rows / interleaved_rows; }

std::size_t centroid_size(const ScorerShape& shape, std::size_t tile_rows) {
  return shape.parts == 0 ? 0 : max_pieces(tile_rows) * shape.dim;
}

CodebooksOnDevice books_of(const CudaStream& stream, const ListCodec& codec) {
  if (codec.is_flat()) return {};
  return codec.encoding == ListEncoding::lsq
             ? CodebooksOnDevice(stream, codec.codewords, codec.dim, list_search_name)
             : CodebooksOnDevice(stream, codec.codewords, codec.part_begins, codec.bits, list_search_name);
}

}  // namespace

ScorerShape scorer_shape(const ListSearchArgs& args) {
  return {.dim = args.codec.dim,
          .metric = args.metric,
          .code_bytes = args.codec.code_bytes,
          .query_element = element_size(args.queries.type()),
          .parts = args.codec.is_flat() ? 0 : args.codec.parts(),
          .bits = args.codec.bits,
          .additive = args.codec.encoding == ListEncoding::lsq};
}

ListTileCodes::ListTileCodes(const CudaStream& stream, const ListSearchArgs& args, std::size_t tile_rows)
    : stream_(stream),
      args_(args),
      host_codes_(stream.budget(), tile_rows * args.codec.code_bytes),
      host_lists_(stream.budget(), max_pieces(tile_rows)),
      host_centroids_(stream.budget(), centroid_size(scorer_shape(args), tile_rows)),
      codes_(stream, host_codes_.size(), list_search_name),
      lists_(stream, host_lists_.size(), list_search_name),
      centroids_(stream, host_centroids_.size(), list_search_name),
      books_(books_of(stream, args.codec)) {}

std::uint64_t ListTileCodes::bytes(const ScorerShape& shape, std::size_t tile_rows) {
  const std::size_t pieces = max_pieces(tile_rows);
  const std::size_t centroids = centroid_size(shape, tile_rows);
  return buffer_bytes(tile_rows * shape.code_bytes, 1) + buffer_bytes(pieces, sizeof(std::uint32_t)) +
         buffer_bytes(centroids, sizeof(float)) + device_bytes(tile_rows * shape.code_bytes, 1) +
         device_bytes(pieces, sizeof(std::uint32_t)) + device_bytes(centroids, sizeof(float)) +
         CodebooksOnDevice::bytes(shape.book_size(), shape.parts);
}

void ListTileCodes::load(const ListTiles& tiles, const ListTile& tile) {
  // Queued work may still read the previous tile's host buffers.
  stream_.synchronize(list_search_name);
  const std::span<const ListPiece> pieces = tiles.pieces(tile);
  const std::size_t code_bytes = args_.codec.code_bytes;
  stream_.context.threads->for_each(pieces.size(), [&](std::size_t number) {
    const ListPiece& piece = pieces[number];
    const std::size_t padded = round_up<std::size_t>(piece.rows, interleaved_rows);
    std::byte* const to = host_codes_.data() + piece.first_row * code_bytes;
    std::memcpy(to, args_.lists[piece.list].codes + piece.first * code_bytes, piece.rows * code_bytes);
    // Padding rows get scores that are never read.
    std::memset(to + piece.rows * code_bytes, 0, (padded - piece.rows) * code_bytes);
    std::fill_n(host_lists_.data() + piece.first_row / interleaved_rows, padded / interleaved_rows,
                static_cast<std::uint32_t>(number));
    if (!args_.codec.is_flat())
      std::ranges::copy(args_.codec.centroids.row(piece.list),
                        host_centroids_.data() + number * args_.codec.dim);
  });
  rows_ = tile.rows;
  const auto send = [&]<typename T>(const Buffer<T>& from, DeviceBuffer<T>& to, std::size_t count) {
    if (count != 0)
      copy_to_device(stream_, std::span<const T>(from.data(), count), to.data(), list_search_name);
  };
  send(host_codes_, codes_, rows_ * code_bytes);
  send(host_lists_, lists_, rows_ / interleaved_rows);
  send(host_centroids_, centroids_, args_.codec.is_flat() ? 0 : pieces.size() * args_.codec.dim);
}

CodeRowsTask ListTileCodes::rows() const {
  return {.codes = reinterpret_cast<const std::uint8_t*>(codes_.data()),
          .lists = lists_.data(),
          .centroids = centroids_.data(),
          .rows = static_cast<std::uint32_t>(rows_),
          .code_bytes = static_cast<std::uint32_t>(args_.codec.code_bytes),
          .books = books_.view()};
}

}  // namespace nearwise::gpu

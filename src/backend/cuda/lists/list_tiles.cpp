#include "backend/cuda/lists/list_tiles.h"

#include <algorithm>

#include "backend/cuda/warp/interleaved_codes.cuh"
#include "core/checked.h"

namespace nearwise::gpu {
namespace {

constexpr std::uint32_t no_list = UINT32_MAX;

}  // namespace

ListTiles::ListTiles(MemoryBudget& budget, const ListSearchArgs& args, std::size_t tile_rows)
    : probe_count_(args.probe_count()),
      views_(args.lists),
      probes_(budget, args.probes.size()),
      first_pieces_(args.lists.size() + 1) {
  sort_probes(args);
  split_lists(args, tile_rows);
  set_columns(args.queries.rows());
}

std::uint64_t ListTiles::bytes(std::size_t lists, std::size_t queries, std::size_t probes, std::size_t rows,
                               std::size_t tile_rows) {
  const std::size_t pieces = lists + rows / tile_rows;
  return buffer_bytes(queries * probes, sizeof(std::uint32_t)) + (lists + 1) * sizeof(std::size_t) +
         pieces * (sizeof(ListPiece) + sizeof(ListTile));
}

void ListTiles::sort_probes(const ListSearchArgs& args) {
  std::ranges::transform(args.probes, probes_.data(),
                         [](Id list) { return list == no_id ? no_list : static_cast<std::uint32_t>(list); });
  for (std::size_t query = 0; query < args.queries.rows(); ++query) {
    const auto query_probes = probes_.span().subspan(query * probe_count_, probe_count_);
    std::ranges::sort(query_probes);
    for (const std::uint32_t list : query_probes)
      if (list != no_list) first_pieces_[list] = 1;  // mark as probed
  }
}

void ListTiles::split_lists(const ListSearchArgs& args, std::size_t tile_rows) {
  for (std::uint32_t list = 0; list < args.lists.size(); ++list) {
    const std::size_t rows = first_pieces_[list] != 0 ? args.lists[list].rows : 0;
    first_pieces_[list] = pieces_.size();
    for (std::size_t first = 0; first < rows; first += tile_rows) {
      ListPiece piece = {.list = list,
                         .rows = static_cast<std::uint32_t>(std::min(tile_rows, rows - first)),
                         .first = first};
      const std::size_t taken = round_up<std::size_t>(piece.rows, interleaved_rows);
      if (tiles_.empty() || tiles_.back().rows + taken > tile_rows)
        tiles_.push_back({.first_piece = pieces_.size()});
      ListTile& tile = tiles_.back();
      piece.first_row = static_cast<std::uint32_t>(tile.rows);
      tile.rows += taken;
      tile.longest = std::max(tile.longest, piece.rows);
      ++tile.pieces;
      pieces_.push_back(piece);
    }
  }
  first_pieces_.back() = pieces_.size();
}

void ListTiles::set_columns(std::size_t queries) {
  Id position = 0;
  for (ListTile& tile : tiles_) {
    for (std::size_t query = 0; query < queries; ++query) {
      std::size_t columns = 0;
      std::size_t count = 0;
      for_each_piece(query, tile, [&](std::size_t piece, std::size_t column) {
        columns = column + pieces_[tile.first_piece + piece].rows;
        ++count;
      });
      tile.columns = std::max(tile.columns, columns);
      tile.max_pairs = std::max(tile.max_pairs, count);
    }
    tile.first_position = position;
    position += static_cast<Id>(tile.columns);
  }
}

std::span<const std::uint32_t> ListTiles::lists_from(std::size_t query, std::uint32_t list) const {
  const auto query_probes = probes_.span().subspan(query * probe_count_, probe_count_);
  const auto first = std::ranges::lower_bound(query_probes, list);
  return {first, std::ranges::lower_bound(first, query_probes.end(), no_list)};
}

std::size_t ListTiles::rows_of(std::size_t query) const {
  std::size_t rows = 0;
  for (const std::uint32_t list : lists_from(query, 0)) rows += views_[list].rows;
  return rows;
}

ListTiles::Place ListTiles::find(std::size_t query, Id position) const {
  const auto after = std::ranges::upper_bound(tiles_, position, {}, &ListTile::first_position);
  const ListTile& tile = *(after - 1);
  const auto column = static_cast<std::size_t>(position - tile.first_position);
  Place place;
  for_each_piece(query, tile, [&](std::size_t number, std::size_t begin) {
    const ListPiece& piece = pieces_[tile.first_piece + number];
    if (column >= begin && column < begin + piece.rows) place = {piece.list, piece.first + (column - begin)};
  });
  return place;
}

}  // namespace nearwise::gpu

// The probed lists of a search, split into tiles that fit the device, and the rows of every query in them.
//
// Lists without probes are skipped, long lists are split into pieces. In a tile every piece starts at a
// multiple of 32 rows. The rows of a query in a tile, piece after piece, are its columns. A position is a
// column index over all tiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/ops.h"
#include "core/memory.h"

namespace nearwise::gpu {

struct ListPiece {
  std::uint32_t list = 0;
  std::uint32_t rows = 0;
  std::uint32_t first_row = 0;  // in the tile
  std::size_t first = 0;        // first row in the list
};

struct ListTile {
  std::size_t first_piece = 0;
  std::size_t pieces = 0;
  std::size_t rows = 0;       // including padding of pieces: a multiple of 32
  std::size_t columns = 0;    // maximum over queries
  std::size_t max_pairs = 0;  // pieces per query, maximum
  std::uint32_t longest = 0;  // rows of a piece, maximum
  Id first_position = 0;
};

class ListTiles {
 public:
  // Tiles have at most tile_rows rows, a multiple of 32.
  ListTiles(MemoryBudget& budget, const ListSearchArgs& args, std::size_t tile_rows);
  static std::uint64_t bytes(std::size_t lists, std::size_t queries, std::size_t probes, std::size_t rows,
                             std::size_t tile_rows);

  std::span<const ListTile> tiles() const { return tiles_; }
  std::span<const ListPiece> pieces(const ListTile& tile) const {
    return std::span(pieces_).subspan(tile.first_piece, tile.pieces);
  }

  // Rows in all lists of a query.
  std::size_t rows_of(std::size_t query) const;

  // visit(piece of the tile, first column) for every piece of the tile that the query probes.
  template <typename Visit>
  void for_each_piece(std::size_t query, const ListTile& tile, const Visit& visit) const {
    if (tile.pieces == 0) return;
    const std::size_t end_piece = tile.first_piece + tile.pieces;
    std::size_t column = 0;
    for (const std::uint32_t list : lists_from(query, pieces_[tile.first_piece].list)) {
      if (first_pieces_[list] >= end_piece) return;
      for (std::size_t i = first_pieces_[list]; i < first_pieces_[list + 1]; ++i) {
        if (i < tile.first_piece || i >= end_piece) continue;
        visit(i - tile.first_piece, column);
        column += pieces_[i].rows;
      }
    }
  }

  struct Place {
    std::uint32_t list = 0;
    std::size_t row = 0;
  };
  // Row at one of the query's positions.
  Place find(std::size_t query, Id position) const;

 private:
  // The query's lists from `list` on, ascending.
  std::span<const std::uint32_t> lists_from(std::size_t query, std::uint32_t list) const;
  void sort_probes(const ListSearchArgs& args);
  void split_lists(const ListSearchArgs& args, std::size_t tile_rows);
  void set_columns(std::size_t queries);

  const std::size_t probe_count_;
  std::span<const ListView> views_;
  Buffer<std::uint32_t> probes_;           // [queries, probes] ascending, then no_list
  std::vector<std::size_t> first_pieces_;  // [lists + 1]
  std::vector<ListPiece> pieces_;
  std::vector<ListTile> tiles_;
};

}  // namespace nearwise::gpu

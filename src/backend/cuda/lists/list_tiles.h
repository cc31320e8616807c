// The lists that a search looks at, cut into tiles that fit the device, and for every query its rows in them.
//
// Lists that nobody probes are left out. Long ones are cut into pieces. In a tile every piece begins at a multiple of 32
// rows; to a query its rows of a tile, one piece after another, are columns 0 to columns - 1 at the most. A position is
// a column of all tiles in a row.
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
  std::uint32_t first_row = 0;  // of the tile
  std::size_t first = 0;        // row of the list
};

struct ListTile {
  std::size_t first_piece = 0;
  std::size_t pieces = 0;
  std::size_t rows = 0;        // with those that fill up pieces: a multiple of 32
  std::size_t columns = 0;     // of the query that has most
  std::size_t most_pairs = 0;  // pieces of the query that has most
  std::uint32_t longest = 0;   // rows of a piece
  Id first_position = 0;
};

class ListTiles {
 public:
  // Tiles of at most tile_rows rows, a multiple of 32.
  ListTiles(MemoryBudget& budget, const ListSearchArgs& args, std::size_t tile_rows);
  static std::uint64_t bytes(std::size_t lists, std::size_t queries, std::size_t probes, std::size_t rows,
                             std::size_t tile_rows);

  std::span<const ListTile> tiles() const { return tiles_; }
  std::span<const ListPiece> pieces(const ListTile& tile) const {
    return std::span(pieces_).subspan(tile.first_piece, tile.pieces);
  }

  // All rows in the lists of a query.
  std::size_t rows_of(std::size_t query) const;

  // visit(piece of the tile, column where it begins) for every piece of the tile that the query looks at.
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
  // Of a position that the query has.
  Place find(std::size_t query, Id position) const;

 private:
  // The query's lists from this one on, ascending.
  std::span<const std::uint32_t> lists_from(std::size_t query, std::uint32_t list) const;
  void sort_probes(const ListSearchArgs& args);
  void cut(const ListSearchArgs& args, std::size_t tile_rows);
  void measure(std::size_t queries);

  const std::size_t probe_count_;
  std::span<const ListView> views_;
  Buffer<std::uint32_t> probes_;           // [queries, probes] ascending, then no_list
  std::vector<std::size_t> first_pieces_;  // [lists + 1]
  std::vector<ListPiece> pieces_;
  std::vector<ListTile> tiles_;
};

}  // namespace nearwise::gpu

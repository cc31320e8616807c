// Candidates of edges, and what a device keeps of them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/dispatch.h"
#include "core/math/random.h"

namespace nearwise::support {

struct PruneShape {
  std::size_t rows = 100;
  std::size_t row_bytes = 64;
  unsigned values = 256;    // of codes: few make many equal distances
  std::size_t length = 20;  // of lists
  std::size_t others = 12;  // further candidates of a row, fewer than this; 0: none
  std::size_t hub = 0;      // further candidates of the first pruned row
  std::size_t degree = 16;
  bool keep_short_lists = false;
  bool some = false;      // a third of the rows, in any order
  bool in_place = false;  // edges are written over the lists, which have as many columns
  std::uint64_t seed = 1;
};

inline std::string describe(const PruneShape& shape) {
  return fmt::format(
      "{} rows of {} bytes, {} values, lists of {}, {} others, hub of {}, degree {}{}{}{}, seed {}",
      shape.rows, shape.row_bytes, shape.values, shape.length, shape.others, shape.hub, shape.degree,
      shape.keep_short_lists ? ", short lists kept" : "", shape.some ? ", some rows" : "",
      shape.in_place ? ", in place" : "", shape.seed);
}

class PruneCase {
 public:
  explicit PruneCase(const PruneShape& shape)
      : shape_(shape), random_(shape.seed, 93), codes_(shape.rows, shape.row_bytes) {
    for (std::size_t row = 0; row < shape.rows; ++row)
      for (std::size_t i = 0; i < shape.row_bytes; ++i)
        codes_(row, i) = static_cast<std::uint8_t>(i % 7 == 0 ? draw(shape.values) : 0);
    for (std::uint32_t row = 0; row < shape.rows; ++row)
      if (!shape.some || row % 3 == 0) rows_.push_back(row);
    if (shape.some) std::reverse(rows_.begin(), rows_.end());
    lists_ = Matrix<std::int32_t>(rows_.size(), shape.length);
    for (std::size_t place = 0; place < rows_.size(); ++place) {
      const std::size_t used = draw(shape.length + 1);
      for (std::size_t i = 0; i < shape.length; ++i)
        lists_(place, i) = i < used ? static_cast<std::int32_t>(draw(shape.rows)) : no_edge;
      const std::size_t more = place == 0 ? shape.hub : shape.others == 0 ? 0 : draw(shape.others);
      for (std::size_t i = 0; i < more; ++i) others_.push_back(static_cast<std::uint32_t>(draw(shape.rows)));
      offsets_.push_back(others_.size());
    }
  }

  std::vector<std::int32_t> edges(const Context& context) const {
    Matrix<std::int32_t> lists(rows_.size(), shape_.length);
    std::copy_n(lists_.data(), rows_.size() * shape_.length, lists.data());
    Matrix<std::int32_t> apart(rows_.size(), shape_.degree);
    Matrix<std::int32_t>& edges = shape_.in_place ? lists : apart;
    const auto stream = open_stream(context);
    PruneEdgesArgs args = {.codes = codes_.view(),
                           .lists = lists.view(),
                           .keep_short_lists = shape_.keep_short_lists,
                           .edges = edges.view()};
    if (shape_.some) args.rows = rows_;
    if (shape_.others != 0 || shape_.hub != 0) {
      args.offsets = offsets_;
      args.others = others_;
    }
    dispatch(&Ops::prune_edges, "prune_edges", *stream, args);
    return {edges.data(), edges.data() + edges.rows() * edges.cols()};
  }

 private:
  std::size_t draw(std::size_t bound) { return random_.below(drawn_++, bound); }

  const PruneShape shape_;
  const Random random_;
  std::uint64_t drawn_ = 0;
  Matrix<std::uint8_t> codes_;
  std::vector<std::uint32_t> rows_;
  Matrix<std::int32_t> lists_;
  std::vector<std::uint64_t> offsets_ = {0};
  std::vector<std::uint32_t> others_;
};

}  // namespace nearwise::support

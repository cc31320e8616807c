// Search graphs of random edges, and what a device finds in them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/dispatch.h"
#include "core/filter.h"
#include "graph_index/entry_tree.h"
#include "graph_index/graph_rows.h"
#include "graph_index/train_codec.h"
#include "nearwise/neighbors.h"
#include "support/knn_cases.h"

namespace nearwise::support {

struct GraphShape {
  Kind kind = Kind::normal;
  Metric metric = Metric::sqeuclidean;
  ElementType type = ElementType::f32;
  std::size_t rows = 200;
  std::size_t dim = 20;
  std::size_t degree = 16;
  std::size_t tops = 5;
  std::size_t leaves = 20;
  std::size_t queries = 6;
  std::size_t k = 5;
  std::size_t beam = 20;
  std::size_t evaluated = 12;
  bool nibbles = false;
  // Percent of the rows that may be results.
  std::size_t allowed = 100;
  bool absent = false;
  std::uint64_t seed = 1;
};

inline std::string describe(const GraphShape& shape) {
  return fmt::format(
      "{} rows of {}, degree {}, {} leaves in {}, {} queries, k {}, beam {}, {} evaluated, {}{}{} % allowed, "
      "{} "
      "{} {}, seed {}",
      shape.rows, shape.dim, shape.degree, shape.leaves, shape.tops, shape.queries, shape.k, shape.beam,
      shape.evaluated, shape.nibbles ? "4-bit codes, " : "", shape.absent ? "absent rows, " : "",
      shape.allowed, name(shape.type), name(shape.kind), name(shape.metric), shape.seed);
}

struct GraphFound {
  Neighbors neighbors;
  std::vector<std::uint8_t> is_starved;

  bool operator==(const GraphFound& other) const {
    const std::size_t entries = neighbors.ids.rows() * neighbors.ids.cols();
    return std::equal(neighbors.ids.data(), neighbors.ids.data() + entries, other.neighbors.ids.data()) &&
           std::memcmp(neighbors.distances.data(), other.neighbors.distances.data(),
                       entries * sizeof(float)) == 0 &&
           is_starved == other.is_starved;
  }
};

class GraphCase {
 public:
  explicit GraphCase(const GraphShape& shape)
      : shape_(shape),
        random_(shape.seed, 92),
        problem_(make_problem({.kind = shape.kind,
                               .rows = shape.rows,
                               .queries = shape.queries,
                               .dim = shape.dim,
                               .base_type = shape.type,
                               .query_type = shape.type,
                               .base_layout = Layout::dense,
                               .query_layout = Layout::padded,
                               .seed = shape.seed})) {
    const Context cpu = Context::cpu({.threads = 1});
    const RowsView base = problem_.base;
    codec_ = graph_index::train_codec(cpu, base, shape.metric);
    codes_ = Matrix<std::uint8_t>(shape.rows, codec_.row_bytes());
    graph_index::encode_rows(
        cpu, codec_, base, shape.rows, [](std::size_t row) { return row; }, codes_.data());
    if (shape.nibbles) {
      graph_index::train_nibbles(codec_, codes_.view());
      nibbles_ = Matrix<std::uint8_t>(shape.rows, codec_.nibble_row_bytes());
      graph_index::encode_nibbles(cpu, codec_, codes_.data(), shape.rows, nibbles_.data());
    }
    make_edges();
    make_entries();
    for (std::size_t row = 0; row < shape.rows; ++row)
      if (draw(100) < shape.allowed) allowed_[row / 64] |= std::uint64_t{1} << row % 64;
    for (std::size_t query = 0; query < shape.queries; ++query)
      absent_.push_back(static_cast<std::uint32_t>(draw(shape.rows)));
  }

  SearchGraphView view() const {
    RowsView vectors = problem_.base;
    if (graph_index::are_vectors_codes(codec_, shape_.type))
      vectors = {reinterpret_cast<const std::byte*>(codes_.data()), ElementType::u8, shape_.rows, shape_.dim,
                 codec_.row_bytes()};
    return {&codec_,
            codes_.view(),
            nibbles_.view(),
            edges_.view(),
            {top_codes_.view(), ends_, leaf_codes_.view(), leaf_rows_},
            vectors};
  }

  std::unique_ptr<PreparedGraph> prepare(Stream& stream) const {
    return dispatch(&Ops::prepare_graph, "prepare_graph", stream,
                    PrepareGraphArgs{view(), stream.context.budget});
  }
  GraphFound search(Stream& stream, const PreparedGraph& prepared) const {
    GraphFound found = {{Matrix<Id>(shape_.queries, shape_.k), Matrix<float>(shape_.queries, shape_.k)},
                        std::vector<std::uint8_t>(shape_.queries)};
    SearchGraphArgs args = {.graph = prepared,
                            .queries = problem_.queries,
                            .k = shape_.k,
                            .beam = shape_.beam,
                            .evaluated = shape_.evaluated,
                            .ids = found.neighbors.ids.view(),
                            .distances = found.neighbors.distances.view(),
                            .is_starved = found.is_starved};
    if (shape_.allowed < 100) args.allowed = {allowed_.data(), 0};
    if (shape_.absent) args.absent = absent_;
    dispatch(&Ops::search_graph, "search_graph", stream, args);
    return found;
  }
  GraphFound search(const Context& context) const {
    const auto stream = open_stream(context);
    return search(*stream, *prepare(*stream));
  }

 private:
  std::size_t draw(std::size_t bound) { return random_.below(drawn_++, bound); }

  // Different rows; some lists are short.
  void make_edges() {
    edges_ = Matrix<std::int32_t>(shape_.rows, shape_.degree);
    for (std::size_t row = 0; row < shape_.rows; ++row) {
      const std::span<std::int32_t> list = edges_.view().row(row);
      std::fill(list.begin(), list.end(), no_edge);
      const std::size_t length = draw(4) == 0 ? draw(shape_.degree + 1) : shape_.degree;
      std::size_t count = 0;
      for (std::size_t i = 0; i < length; ++i) {
        const auto other = static_cast<std::int32_t>(draw(shape_.rows));
        if (std::find(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count), other) ==
            list.begin() + static_cast<std::ptrdiff_t>(count))
          list[count++] = other;
      }
    }
  }

  // Random rows in random groups, some of which are empty; a row may be a leaf twice.
  void make_entries() {
    const std::size_t row_bytes = codec_.row_bytes();
    top_codes_ = Matrix<std::uint8_t>(shape_.tops, row_bytes);
    leaf_codes_ = Matrix<std::uint8_t>(shape_.leaves, row_bytes);
    for (std::size_t top = 0; top < shape_.tops; ++top) {
      std::copy_n(codes_.view().row(draw(shape_.rows)).data(), row_bytes, top_codes_.view().row(top).data());
      ends_.push_back(
          static_cast<std::uint32_t>(top + 1 == shape_.tops ? shape_.leaves : draw(shape_.leaves + 1)));
    }
    std::sort(ends_.begin(), ends_.end());
    for (std::size_t leaf = 0; leaf < shape_.leaves; ++leaf) {
      leaf_rows_.push_back(static_cast<std::uint32_t>(draw(shape_.rows)));
      std::copy_n(codes_.view().row(leaf_rows_.back()).data(), row_bytes,
                  leaf_codes_.view().row(leaf).data());
    }
  }

  const GraphShape shape_;
  const Random random_;
  std::uint64_t drawn_ = 0;
  const Problem problem_;
  ScalarCodec codec_;
  Matrix<std::uint8_t> codes_;
  Matrix<std::uint8_t> nibbles_;
  Matrix<std::int32_t> edges_;
  Matrix<std::uint8_t> top_codes_;
  Matrix<std::uint8_t> leaf_codes_;
  std::vector<std::uint32_t> ends_;
  std::vector<std::uint32_t> leaf_rows_;
  std::vector<std::uint64_t> allowed_ = std::vector<std::uint64_t>(shape_.rows / 64 + 2);
  std::vector<std::uint32_t> absent_;
};

}  // namespace nearwise::support

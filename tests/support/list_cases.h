// Inverted lists for tests: random lists with random codes, which nobody trained, and searches in them.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "backend/dispatch.h"
#include "codes/code_norms.h"
#include "codes/codeword_tables.h"
#include "oracle/lists.h"
#include "support/knn_cases.h"

namespace nearwise::support {

struct ListShape {
  Kind kind = Kind::normal;
  Metric metric = Metric::sqeuclidean;
  ElementType type = ElementType::f32;  // of queries, and of rows that are kept
  std::size_t rows = 500;
  std::size_t queries = 70;
  std::size_t dim = 16;
  std::size_t lists = 9;
  std::size_t probes = 3;
  std::size_t parts = 0;  // 0: rows are kept as they are
  unsigned bits = 8;
  bool additive = false;  // codes, of as many codebooks as parts and of 8 bits
  std::size_t k = 10;
  std::size_t candidates = 10;
  bool rerank = false;
  bool centred = false;  // euclidean metrics: scores are of rows around a point near their middle
  Id first_id = 0;
  std::uint64_t seed = 1;
};

// An index over random lists, with random codes: nothing was trained.
class ListCase {
 public:
  explicit ListCase(const ListShape& shape)
      : shape_(shape),
        problem_(make_problem({.kind = shape.kind,
                               .rows = shape.rows,
                               .queries = shape.queries,
                               .dim = shape.dim,
                               .base_type = shape.type,
                               .query_type = shape.type,
                               .base_layout = Layout::dense,
                               .query_layout = Layout::padded,
                               .seed = shape.seed})),
        random_(shape.seed, 77) {
    for (std::size_t part = 0; part <= shape.parts && shape.parts != 0 && !shape.additive; ++part)
      begins_.push_back(part * shape.dim / shape.parts);
    if (shape.parts != 0) make_books();
    for (std::size_t i = 0; shape.centred && i < shape.dim; ++i)
      centre_.push_back(
          static_cast<float>(oracle::element(RowsView(problem_.base).row(i % shape.rows), shape.type, i)));
    ids_.resize(shape.lists);
    codes_.resize(shape.lists);
    decoded_.resize(shape.lists);
    for (std::size_t row = 0; row < shape.rows; ++row) add(row);
    for (std::size_t list = 0; list < shape.lists; ++list)
      views_.push_back(
          {reinterpret_cast<const std::byte*>(codes_[list].data()), ids_[list].data(), ids_[list].size()});
    for (std::size_t query = 0; query < shape.queries; ++query) {
      // Different lists, and here and there none.
      const std::size_t first = random_.below(1000 + query, shape.lists);
      for (std::size_t i = 0; i < shape.probes; ++i)
        probes_.push_back(i >= shape.lists || random_.below(9000 + query * shape.probes + i, 10) == 0
                              ? no_id
                              : static_cast<Id>((first + i) % shape.lists));
    }
  }

  // Re-ranked.
  RowsView rows() const { return problem_.base; }

  Neighbors search(const Context& context) const {
    return search_for(context, problem_.queries, shape_.rerank ? rows() : RowsView());
  }
  // For the first `count` queries.
  Neighbors search_few(const Context& context, std::size_t count) const {
    return search_for(context, RowsView(problem_.queries).slice(0, std::min(count, shape_.queries)),
                      shape_.rerank ? rows() : RowsView());
  }
  // With the terms of every second list kept, where there are any.
  Neighbors search_with_norms(const Context& context, std::size_t count) const {
    const ListCodec codec = this->codec();
    std::vector<std::vector<float>> kept(shape_.lists);
    std::vector<std::atomic<const float*>> norms(shape_.lists);
    if (CodeNorms::are_needed(codec, shape_.metric)) {
      MemoryBudget budget;
      const CodewordTables codewords(budget, codec, centre_);
      CodeNorms made(budget, codec, codewords, shape_.metric, centre_);
      for (std::size_t list = 1; list < shape_.lists; list += 2) {
        const ListView& view = views_[list];
        if (view.rows == 0) continue;
        kept[list].resize(view.rows);
        made.begin_list(list);
        made.fill(view.codes, view.rows, kept[list].data());
        kept[list].push_back(std::ranges::min(kept[list]));
        norms[list] = kept[list].data();
      }
    }
    return search_for(context, RowsView(problem_.queries).slice(0, std::min(count, shape_.queries)),
                      shape_.rerank ? rows() : RowsView(), norms);
  }
  Neighbors search(const Context& context, const RowsView& rows) const {
    return search_for(context, problem_.queries, rows);
  }
  ListCodec codec() const {
    return {.encoding = shape_.parts == 0 ? ListEncoding::flat
                        : shape_.additive ? ListEncoding::lsq
                                          : ListEncoding::pq,
            .dim = shape_.dim,
            .type = shape_.parts == 0 ? shape_.type : ElementType::f32,
            .code_bytes = code_bytes(),
            .part_begins = begins_,
            .codewords = books_,
            .bits = shape_.bits,
            .centroids = {centroids_.data(), shape_.lists, shape_.dim}};
  }
  Neighbors search_for(const Context& context, const RowsView& queries, const RowsView& rows = {},
                       std::span<const std::atomic<const float*>> norms = {}) const {
    Neighbors result = search(context, queries, views_, {.rows = rows}, norms);
    if (rows.rows() != 0 && rows.place().kind == DeviceKind::cpu)
      check_kept(context, queries, rows, norms, result);
    return result;
  }

 private:
  // Vectors in the lists give the same answers as rows by id.
  void check_kept(const Context& context, const RowsView& queries, const RowsView& rows,
                  std::span<const std::atomic<const float*>> norms, const Neighbors& expected) const {
    const std::size_t bytes = rows.dim() * element_size(rows.type());
    std::vector<std::vector<std::byte>> vectors(views_.size());
    std::vector<ListView> views(views_.begin(), views_.end());
    for (std::size_t list = 0; list < views.size(); ++list) {
      vectors[list].resize(views[list].rows * bytes + 1);
      for (std::size_t row = 0; row < views[list].rows; ++row)
        std::memcpy(vectors[list].data() + row * bytes,
                    rows.row(static_cast<std::size_t>(views[list].ids[row])), bytes);
      views[list].vectors = vectors[list].data();
    }
    const Neighbors kept = search(context, queries, views,
                                  {.kept = {.bytes = bytes, .type = rows.type(), .dim = rows.dim()}}, norms);
    const std::size_t entries = queries.rows() * shape_.k;
    EXPECT_TRUE(std::equal(kept.ids.data(), kept.ids.data() + entries, expected.ids.data()));
    EXPECT_EQ(std::memcmp(kept.distances.data(), expected.distances.data(), entries * sizeof(float)), 0);
  }

  Neighbors search(const Context& context, const RowsView& queries, std::span<const ListView> views,
                   const RerankVectors& rerank, std::span<const std::atomic<const float*>> norms) const {
    const ListCodec codec = this->codec();
    const auto stream = open_stream(context);
    Neighbors result{Matrix<Id>(queries.rows(), shape_.k), Matrix<float>(queries.rows(), shape_.k)};
    dispatch(&Ops::list_search, "list_search", *stream,
             ListSearchArgs{.queries = queries,
                            .probes = std::span(probes_).first(queries.rows() * shape_.probes),
                            .lists = views,
                            .codec = codec,
                            .metric = shape_.metric,
                            .centre = centre_,
                            .norms = norms,
                            .k = shape_.k,
                            .candidates = shape_.candidates,
                            .rerank = rerank,
                            .ids = result.ids.view(),
                            .distances = result.distances.view()});
    return result;
  }

 public:
  // The shape is to be known to the costs of a search, too.
  ListSearchCosts costs(const Context& context) const {
    const auto stream = open_stream(context);
    return dispatch(&Ops::list_search_costs, "list_search_costs", *stream,
                    ListSearchShape{.dim = shape_.dim,
                                    .metric = shape_.metric,
                                    .query_type = shape_.type,
                                    .row_type = shape_.parts == 0 ? shape_.type : ElementType::f32,
                                    .candidates = shape_.candidates,
                                    .probes = shape_.probes,
                                    .lists = shape_.lists,
                                    .rows = shape_.rows,
                                    .codebooks = shape_.additive ? shape_.parts : 0});
  }

  ::testing::AssertionResult holds(const Neighbors& given) const {
    const std::vector<double> queries = oracle::to_doubles(problem_.queries);
    const std::vector<double> rows =
        shape_.rerank ? oracle::to_doubles(problem_.base) : std::vector<double>();
    for (std::size_t query = 0; query < given.ids.rows(); ++query) {
      const auto expected =
          oracle::search_lists(std::span(queries).subspan(query * shape_.dim, shape_.dim), decoded_,
                               std::span(probes_).subspan(query * shape_.probes, shape_.probes), shape_.k,
                               shape_.candidates, rows, shape_.metric);
      for (std::size_t i = 0; i < shape_.k; ++i)
        if (expected[i].id != given.ids(query, i) ||
            std::memcmp(&expected[i].value, &given.distances(query, i), sizeof(float)) != 0)
          return ::testing::AssertionFailure() << fmt::format(
                     "query {}, answer {}: expected {} at {}, got {} at {}", query, i, expected[i].id,
                     expected[i].value, given.ids(query, i), given.distances(query, i));
    }
    return ::testing::AssertionSuccess();
  }

 private:
  std::size_t code_bytes() const {
    if (shape_.parts == 0) return shape_.dim * element_size(shape_.type);
    return shape_.bits == 8 ? shape_.parts : (shape_.parts + 1) / 2;
  }

  void make_books() {
    // Codewords and centroids out of the data, so that sums are of its size.
    const RowsView base = problem_.base;
    const auto value = [&](std::uint64_t index) {
      return static_cast<float>(oracle::element(base.row(random_.below(3 * index, base.rows())), base.type(),
                                                random_.below(3 * index + 1, base.dim())));
    };
    const std::size_t summed = shape_.additive ? shape_.parts : 1;
    for (std::size_t i = 0; i < summed * shape_.dim << shape_.bits; ++i)
      books_.push_back(value(i) / static_cast<float>(summed));
    for (std::size_t i = 0; i < shape_.lists * shape_.dim; ++i)
      centroids_.push_back(value(1'000'000 + i) / 2);
  }

  void add(std::size_t row) {
    // Some lists stay empty, one has most rows.
    const std::size_t list = random_.below(50'000 + row, 2) == 0
                                 ? shape_.lists / 2
                                 : random_.below(70'000 + row, (shape_.lists + 1) / 2);
    ids_[list].push_back(shape_.first_id + static_cast<Id>(shape_.rerank ? row : (row * 7919) % 100'003));
    decoded_[list].ids.push_back(ids_[list].back());
    std::vector<std::uint8_t> code(code_bytes());
    if (shape_.parts == 0) {
      std::memcpy(code.data(), RowsView(problem_.base).row(row), code.size());
    } else {
      for (std::size_t part = 0; part < shape_.parts; ++part) {
        const auto codeword = static_cast<unsigned>(
            random_.below(90'000 + row % 97 * 64 + part, std::uint64_t{1} << shape_.bits));
        if (shape_.bits == 8)
          code[part] = static_cast<std::uint8_t>(codeword);
        else
          code[part / 2] = static_cast<std::uint8_t>(code[part / 2] | codeword << (part % 2 * 4));
      }
    }
    codes_[list].insert(codes_[list].end(), code.begin(), code.end());
    std::vector<double> values;
    if (shape_.parts == 0) {
      for (std::size_t i = 0; i < shape_.dim; ++i)
        values.push_back(oracle::element(RowsView(problem_.base).row(row), shape_.type, i));
    } else {
      const auto centroid = std::span(centroids_).subspan(list * shape_.dim, shape_.dim);
      values = shape_.additive ? oracle::decode_additive(centroid, books_, code)
                               : oracle::decode_product(centroid, begins_, books_, shape_.bits, code);
    }
    decoded_[list].rows.insert(decoded_[list].rows.end(), values.begin(), values.end());
  }

  const ListShape shape_;
  const Problem problem_;
  const Random random_;
  std::vector<std::size_t> begins_;
  std::vector<float> books_;
  std::vector<float> centroids_;
  std::vector<float> centre_;
  std::vector<std::vector<Id>> ids_;
  std::vector<std::vector<std::uint8_t>> codes_;
  std::vector<oracle::DecodedList> decoded_;
  std::vector<ListView> views_;
  std::vector<Id> probes_;
};

inline std::string describe(const ListShape& shape) {
  return fmt::format(
      "{} {} {}, {} rows, {} queries, d {}, {} of {} lists, {} {} of {} bits, k {} of {}, "
      "rerank {}, centred {}, seed {}",
      name(shape.kind), name(shape.metric), name(shape.type), shape.rows, shape.queries, shape.dim,
      shape.probes, shape.lists, shape.parts, shape.additive ? "codebooks" : "parts", shape.bits, shape.k,
      shape.candidates, shape.rerank, shape.centred, shape.seed);
}

}  // namespace nearwise::support

// Product codes whose rounding errors all have the same sign: the error bound of a scan of residuals must
// cover them.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "backend/dispatch.h"
#include "oracle/lists.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

// A list of two vectors, centroid + residual and centroid - residual, and a query beyond the centroid in its
// direction: the first vector is nearer. Every product of query and residual is less than half a unit in the
// last place of half the squared norm, the bias with which an f32 scan starts: all products are rounded away,
// and the scores favour the other vector.
struct Vanishing {
  static constexpr std::size_t parts = 64;
  std::size_t dim;
  std::vector<std::size_t> begins;
  std::vector<float> books;
  std::vector<float> centroid;
  std::vector<float> query;
  std::array<std::array<std::uint8_t, parts / 2>, 2> codes = {};  // of 4 bits
  std::array<Id, 2> ids = {0, 1};

  explicit Vanishing(std::size_t dimension)
      : dim(dimension), books(dimension * 16, 0.0F), centroid(dimension, 1.05F), query(dimension, 2.1F) {
    const std::size_t length = dim / parts;
    // 0.4 units in the last place of 1.05^2 dim / 2, for the dimensions below.
    const float residual = 0.8F * 0x1p-24F * static_cast<float>(dim) / 2 / 2.1F;
    for (std::size_t part = 0; part <= parts; ++part) begins.push_back(part * length);
    for (std::size_t part = 0; part < parts; ++part)
      for (std::size_t i = 0; i < length; ++i) {
        books[part * length * 16 + i] = residual;
        books[part * length * 16 + length + i] = -residual;
      }
    codes[1].fill(0x11);
  }

  // Repeats the query `times` times: few queries use tables, many use packed lists.
  Neighbors search(const Context& context, std::size_t times) const {
    std::vector<float> queries;
    for (std::size_t i = 0; i < times; ++i) queries.insert(queries.end(), query.begin(), query.end());
    const ListCodec codec = {.encoding = ListEncoding::pq,
                             .dim = dim,
                             .type = ElementType::f32,
                             .code_bytes = parts / 2,
                             .part_begins = begins,
                             .codewords = books,
                             .bits = 4,
                             .centroids = {centroid.data(), 1, dim}};
    const std::array<ListView, 1> lists = {
        {{reinterpret_cast<const std::byte*>(codes.data()), ids.data(), 2}}};
    const std::vector<Id> probes(times, 0);
    Neighbors result{Matrix<Id>(times, 1), Matrix<float>(times, 1)};
    const auto stream = open_stream(context);
    dispatch(&Ops::list_search, "list_search", *stream,
             ListSearchArgs{.queries = MatrixView<const float>(queries.data(), times, dim),
                            .probes = probes,
                            .lists = lists,
                            .codec = codec,
                            .metric = Metric::sqeuclidean,
                            .centre = {},
                            .k = 1,
                            .candidates = 1,
                            .ids = result.ids.view(),
                            .distances = result.distances.view()});
    return result;
  }

  oracle::Candidate expected() const {
    oracle::DecodedList list;
    for (std::size_t row = 0; row < 2; ++row) {
      const std::vector<double> decoded = oracle::decode_product(centroid, begins, books, 4, codes[row]);
      list.rows.insert(list.rows.end(), decoded.begin(), decoded.end());
      list.ids.push_back(ids[row]);
    }
    const std::vector<double> exact(query.begin(), query.end());
    return oracle::search_lists(exact, std::array{list}, std::array<Id, 1>{0}, 1, 1, {},
                                Metric::sqeuclidean)[0];
  }
};

TEST(ListBound, ProductsThatVanishInAScore) {
  for (const std::size_t dim : {1024UL, 4096UL, 16384UL}) {
    const Vanishing problem(dim);
    const oracle::Candidate expected = problem.expected();
    ASSERT_EQ(expected.id, 0);
    for (const Context& context : support::every_instruction_set())
      for (const std::size_t times : {1UL, 20UL}) {
        const Neighbors found = problem.search(context, times);
        EXPECT_EQ(found.ids(times - 1, 0), expected.id) << dim << " " << context.isa();
        EXPECT_EQ(found.distances(times - 1, 0), expected.value) << dim << " " << context.isa();
      }
  }
}

}  // namespace
}  // namespace nearwise

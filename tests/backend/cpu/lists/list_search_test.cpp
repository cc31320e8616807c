// Search in inverted lists against the oracle: any codec, metric, data and shape, on every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/distance.h"
#include "support/list_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::ListShape;

// All queries at once, which use packed lists, and a few, which use lookup tables.
void check(const ListShape& shape) {
  const support::ListCase made(shape);
  for (const Context& context : support::every_instruction_set()) {
    EXPECT_TRUE(made.holds(made.search(context))) << describe(shape) << ", " << context.isa();
    EXPECT_TRUE(made.holds(made.search_few(context, 3)))
        << "few of " << describe(shape) << ", " << context.isa();
    EXPECT_TRUE(made.holds(made.search_with_norms(context, 3)))
        << "few with norms of " << describe(shape) << ", " << context.isa();
  }
}

class ListSearchMetrics : public testing::TestWithParam<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metric, ListSearchMetrics, testing::ValuesIn(support::every_metric),
                         support::metric_name);

// Would catch: an error bound that is too tight for decoded vectors, scores used without an error bound.
TEST_P(ListSearchMetrics, RowsOfEveryKind) {
  std::uint64_t seed = 100;
  for (const Kind kind : support::every_kind)
    check({.kind = kind, .metric = GetParam(), .rows = 400, .dim = 19, .seed = ++seed});
}

TEST_P(ListSearchMetrics, ProductCodesOfEveryKind) {
  std::uint64_t seed = 200;
  for (const Kind kind : support::every_kind) {
    if (kind == Kind::largest)
      continue;  // sums of centroid and codeword overflow f32: see ReconstructionsThatOverflow
    for (const unsigned bits : {4U, 8U})
      check({.kind = kind,
             .metric = GetParam(),
             .rows = 300,
             .dim = 24,
             .parts = 5,
             .bits = bits,
             .seed = ++seed});
  }
}

TEST_P(ListSearchMetrics, AdditiveCodesOfEveryKind) {
  std::uint64_t seed = 250;
  for (const Kind kind : support::every_kind) {
    if (kind == Kind::largest) continue;
    for (const std::size_t parts : {1UL, 4UL})
      check({.kind = kind,
             .metric = GetParam(),
             .rows = 300,
             .dim = 13,
             .parts = parts,
             .additive = true,
             .centred = is_euclidean(GetParam()) && parts == 4,
             .seed = ++seed});
  }
}

TEST_P(ListSearchMetrics, EveryType) {
  std::uint64_t seed = 300;
  for (const ElementType type : support::every_type)
    for (const std::size_t parts : {0UL, 4UL})
      for (const bool rerank : {false, true})
        check({.kind = Kind::exact_duplicates,
               .metric = GetParam(),
               .type = type,
               .dim = 17,
               .parts = parts,
               .k = 7,
               .candidates = rerank ? 30UL : 7UL,
               .rerank = rerank,
               .seed = ++seed});
}

TEST_P(ListSearchMetrics, ManyShapes) {
  const Random random(7, 400 + static_cast<std::uint64_t>(GetParam()));
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto below = [&](std::uint64_t what, std::size_t bound) {
      return random.below(16 * i + what, bound);
    };
    ListShape shape = {.metric = GetParam(),
                       .rows = below(0, 3) == 0 ? below(1, 5) : 1 + below(1, 1500),
                       .queries = 1 + below(2, 100),
                       .dim = 1 + below(3, 70),
                       .lists = 1 + below(4, 20),
                       .probes = 1 + below(5, 8),
                       .bits = below(6, 2) == 0 ? 4U : 8U,
                       .k = 1 + below(7, below(8, 2) == 0 ? 5 : 200),
                       .rerank = below(9, 2) == 0,
                       .first_id = 0,
                       .seed = 500 + i};
    shape.rows = std::max<std::size_t>(shape.rows, 1);
    shape.parts = below(10, 3) == 0 ? 0 : 1 + below(11, shape.dim);
    shape.candidates = shape.rerank ? shape.k + below(12, 150) : shape.k;
    if (!shape.rerank && below(13, 3) == 0) shape.first_id = Id{1} << 40;
    check(shape);
  }
}

// Identical codes: more equal distances than a list has room for, ordered by id.
TEST(ListSearch, MoreTiesThanRoom) {
  for (const bool rerank : {false, true})
    for (const std::size_t parts : {0UL, 3UL})
      check({.kind = Kind::identical,
             .rows = 3000,
             .queries = 9,
             .dim = 12,
             .lists = 2,
             .probes = 2,
             .parts = parts,
             .k = 20,
             .candidates = rerank ? 50UL : 20UL,
             .rerank = rerank,
             .seed = 9});
}

// Codes longer than the 16 bytes transposed at a time, and not a multiple; lists of some whole blocks and a
// partial one.
TEST(ListSearch, LongCodesForFewQueries) {
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product, Metric::cosine})
    for (const unsigned bits : {4U, 8U})
      for (const std::size_t parts : {16UL, 33UL, 77UL})
        check({.metric = metric,
               .rows = 1200,
               .queries = 40,
               .dim = 96,
               .lists = 5,
               .probes = 3,
               .parts = parts,
               .bits = bits,
               .k = 10,
               .candidates = 25,
               .rerank = true,
               .centred = metric == Metric::sqeuclidean,
               .seed = parts + bits});
}

// Vector 5 decodes to infinity; the others are (0, x, y, z) of random codewords. Would catch: a block that is
// scanned although one of its panels could not be packed.
class OverflowingList {
 public:
  static constexpr std::size_t dim = 4;
  static constexpr std::size_t rows = 200;
  static constexpr std::size_t queries = 64;  // enough for one list to be packed
  static constexpr Id overflowing = 5;

  explicit OverflowingList(bool additive) : additive_(additive) {
    const Random random(3, 9);
    std::uint64_t next = 0;
    const auto normal = [&] { return static_cast<float>(random.below(next++, 2001)) / 1000 - 1; };
    const std::size_t codebooks = additive ? 2 : dim;
    const std::size_t length = additive ? dim : 1;
    for (std::size_t book = 0; book < codebooks; ++book)
      for (std::size_t codeword = 0; codeword < 256; ++codeword)
        for (std::size_t i = 0; i < length; ++i) codewords_.push_back(normal());
    // An element of vector 5 is 3e38 + 3e38: two codewords, or the centroid and a codeword.
    if (additive) {
      for (std::size_t i = 0; i < dim; ++i) codewords_[i] = codewords_[256 * dim + i] = 3e38F;
    } else {
      centroid_[0] = 3e38F;
      for (std::size_t codeword = 0; codeword < 256; ++codeword)
        codewords_[codeword] = codeword == 0 ? 3e38F : -3e38F;
    }
    for (std::size_t row = 0; row < rows; ++row) {
      std::vector<std::uint8_t> code(codebooks);
      for (std::uint8_t& codeword : code)
        codeword = row == overflowing ? 0 : static_cast<std::uint8_t>(1 + random.below(next++, 255));
      codes_.insert(codes_.end(), code.begin(), code.end());
      ids_.push_back(static_cast<Id>(row));
      if (row == overflowing) continue;
      const std::vector<double> decoded =
          additive ? oracle::decode_additive(centroid_, codewords_, code)
                   : oracle::decode_product(centroid_, begins, codewords_, 8, code);
      decoded_.ids.push_back(ids_.back());
      decoded_.rows.insert(decoded_.rows.end(), decoded.begin(), decoded.end());
    }
    for (std::size_t i = 0; i < queries * dim; ++i) queries_.push_back(normal());
  }

  Neighbors search(const Context& context, Metric metric, std::size_t count) const {
    const std::vector<Id> probes(count, 0);
    const std::vector<ListView> lists = {
        {reinterpret_cast<const std::byte*>(codes_.data()), ids_.data(), ids_.size()}};
    const ListCodec codec = {.encoding = additive_ ? ListEncoding::lsq : ListEncoding::pq,
                             .dim = dim,
                             .code_bytes = additive_ ? 2 : dim,
                             .part_begins = additive_ ? std::span<const std::size_t>() : begins,
                             .codewords = codewords_,
                             .bits = 8,
                             .centroids = {centroid_.data(), 1, dim}};
    const auto stream = open_stream(context);
    Neighbors result{Matrix<Id>(count, rows), Matrix<float>(count, rows)};
    dispatch(&Ops::list_search, "list_search", *stream,
             ListSearchArgs{.queries = RowsView(MatrixView<const float>(queries_.data(), count, dim)),
                            .probes = probes,
                            .lists = lists,
                            .codec = codec,
                            .metric = metric,
                            .centre = {},
                            .k = rows,
                            .candidates = rows,
                            .ids = result.ids.view(),
                            .distances = result.distances.view()});
    return result;
  }

  // The finite vectors in order, then the overflowing one at an infinite distance.
  void check(const Neighbors& given, Metric metric) const {
    const std::vector<double> values(queries_.begin(), queries_.end());
    const Id probe = 0;
    for (std::size_t query = 0; query < given.ids.rows(); ++query) {
      const auto expected = oracle::search_lists(std::span(values).subspan(query * dim, dim), {&decoded_, 1},
                                                 {&probe, 1}, rows - 1, rows - 1, {}, metric);
      for (std::size_t i = 0; i + 1 < rows; ++i) {
        ASSERT_EQ(given.ids(query, i), expected[i].id) << "query " << query << ", result " << i;
        ASSERT_EQ(given.distances(query, i), expected[i].value) << "query " << query << ", result " << i;
      }
      ASSERT_EQ(given.ids(query, rows - 1), overflowing);
      ASSERT_EQ(given.distances(query, rows - 1), std::numeric_limits<float>::infinity());
    }
  }

 private:
  static constexpr std::size_t begins[dim + 1] = {0, 1, 2, 3, 4};
  const bool additive_;
  std::vector<float> codewords_;
  std::vector<float> centroid_ = std::vector<float>(dim, 0.0F);
  std::vector<std::uint8_t> codes_;
  std::vector<Id> ids_;
  std::vector<float> queries_;
  oracle::DecodedList decoded_;
};

TEST(ListSearch, ReconstructionsThatOverflow) {
  for (const bool additive : {false, true}) {
    const OverflowingList list(additive);
    for (const Metric metric : {Metric::sqeuclidean, Metric::cosine})
      for (const Context& context : support::every_instruction_set())
        for (const std::size_t count : {OverflowingList::queries, std::size_t{2}}) {
          SCOPED_TRACE(fmt::format("{} {}, {}, {} queries", additive ? "additive" : "product", name(metric),
                                   context.isa(), count));
          list.check(list.search(context, metric, count), metric);
        }
  }
}

}  // namespace
}  // namespace nearwise

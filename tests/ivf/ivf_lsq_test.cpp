// Inverted files of additive codes against their definition, and their files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <vector>

#include "io/changed_bytes.h"
#include "io/reseal.h"
#include "io/temporary_folder.h"
#include "nearwise/ivf.h"
#include "nearwise/quantize/additive_quantizer.h"
#include "nearwise/storage.h"
#include "oracle/additive_quantizer.h"
#include "support/error_of.h"
#include "support/ivf_cases.h"

namespace nearwise {
namespace {

using support::as_expected;
using support::clustered;
using support::error_of;
using support::one_thread;
using support::Problem;
using support::same;

const IvfOptions quick = {
    .lists = 6, .encoding = Lsq{.code_bytes = 3, .rounds = 2, .train_iterations = 2, .encode_iterations = 3}};

IvfOptions quick_with(Metric metric) {
  IvfOptions options = quick;
  options.metric = metric;
  return options;
}

Ivf made_of(const Problem& problem, const IvfOptions& options = quick) {
  Ivf index = Ivf::train(one_thread(), problem.base, options);
  index.add(one_thread(), problem.base);
  return index;
}

// Codes by the quantizer of the same codewords, which has tests of its own, and rows of codes by the oracle.
support::DecodeLeft decoder_of(const Ivf& index) {
  const std::vector<float> norms(AdditiveQuantizer::centroids, 0.0F);
  const auto quantizer = AdditiveQuantizer::from_codebooks(index.dim(), index.additive_codewords(), norms);
  const oracle::AdditiveQuantizer reference = {
      index.dim(),
      index.code_bytes(),
      {index.additive_codewords().begin(), index.additive_codewords().end()}};
  return [&index, quantizer, reference](std::size_t list, const Matrix<float>& left) {
    const Matrix<std::uint8_t> code =
        quantizer.encode(one_thread(), left, {.iterations = std::get<Lsq>(quick.encoding).encode_iterations});
    // The definition begins with the centroid.
    std::vector<double> sum(index.dim());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] = static_cast<double>(index.centroids()(list, i));
      for (std::size_t book = 0; book < reference.codebooks; ++book)
        sum[i] += reference.codeword(book, code(0, book), i);
      sum[i] = static_cast<double>(static_cast<float>(sum[i]));
    }
    return sum;
  };
}

class IvfLsqMetrics : public testing::TestWithParam<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metric, IvfLsqMetrics, testing::ValuesIn(support::every_metric),
                         support::metric_name);

TEST_P(IvfLsqMetrics, AdditiveCodesAreTheirDefinition) {
  const Problem problem = clustered(500, 40, 11, 70);
  const Ivf index = made_of(problem, quick_with(GetParam()));
  EXPECT_EQ(index.encoding(), "lsq");
  EXPECT_EQ(index.code_bytes(), 3U);
  EXPECT_EQ(index.quantizer(), nullptr);
  for (const std::size_t candidates : {0UL, 30UL}) {
    const oracle::Answer expected =
        support::expected_answer(index, decoder_of(index), problem.base, problem.queries, 6, 3, candidates);
    const IvfSearchOptions options = {
        .probes = 3,
        .codes_only = candidates == 0,
        .rerank = candidates != 0 ? RowsView(problem.base) : RowsView(),
        .candidates = candidates != 0 ? std::optional(candidates) : std::nullopt};
    for (const Context& context : support::every_instruction_set())
      EXPECT_TRUE(same(expected, index.search(context, problem.queries, 6, options)))
          << candidates << " candidates, " << context.isa();
    // A single query.
    const Neighbors alone = index.search(one_thread(), RowsView(problem.queries).slice(7, 1), 6, options);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(alone.ids(0, i), expected.ids[7 * 6 + i]);
  }
}

// Would catch: codes that lose more than product codes of as many bytes.
TEST(IvfLsq, LosesLessThanProductCodes) {
  const Problem problem = support::make_problem(
      {.kind = support::Kind::normal, .rows = 1500, .queries = 60, .dim = 12, .seed = 71});
  const auto mean_distance = [&](const Ivf& index) {
    // The nearest row of a row is the row itself: its distance is what its code has lost, or less.
    const Neighbors found =
        index.search(one_thread(), problem.base, 1, {.probes = index.lists(), .codes_only = true});
    double sum = 0;
    for (std::size_t row = 0; row < 1500; ++row) sum += static_cast<double>(found.distances(row, 0));
    return sum / 1500;
  };
  IvfOptions options = quick;
  std::get<Lsq>(options.encoding).rounds = 6;
  std::get<Lsq>(options.encoding).encode_iterations = 8;
  Ivf product = Ivf::train(one_thread(), problem.base, {.lists = 6, .encoding = Pq{.code_bytes = 3}});
  product.add(one_thread(), problem.base);
  EXPECT_LT(mean_distance(made_of(problem, options)), 0.95 * mean_distance(product));
}

TEST(IvfLsq, BatchesPartsAndRemovalsAreTheWhole) {
  const Problem problem = clustered(900, 30, 9, 72);
  const RowsView base = problem.base;
  Ivf whole = Ivf::train(one_thread(), base, quick);
  Ivf left = whole.empty_copy();
  Ivf right = whole.empty_copy();
  whole.add(Context::cpu({.threads = 3, .seed = 5}), base);
  left.add(one_thread(), base.slice(0, 333));
  std::vector<Id> ids;
  for (Id id = 333; id < 900; ++id) ids.push_back(id);
  right.add(one_thread(), base.slice(333, 567), ids);
  left.merge(one_thread(), right);
  const oracle::Answer expected = as_expected(whole.search(one_thread(), problem.queries, 15, {.probes = 4}));
  EXPECT_TRUE(same(expected, left.search(one_thread(), problem.queries, 15, {.probes = 4})));
  Ivf parts = whole.empty_copy();
  for (const std::size_t first : {0UL, 450UL})
    parts.merge(one_thread(), whole.part(one_thread(), first, 450));
  EXPECT_TRUE(same(expected, parts.search(one_thread(), problem.queries, 15, {.probes = 4})));
  const Ivf other = Ivf::train(Context::cpu({.threads = 1, .seed = 6}), base, quick);
  EXPECT_FALSE(whole.has_same_quantizers(other));
  IvfOptions more_searching = quick;
  std::get<Lsq>(more_searching.encoding).encode_iterations = 4;
  EXPECT_FALSE(whole.has_same_quantizers(Ivf::train(one_thread(), base, more_searching)));
  EXPECT_EQ(error_of([&] { whole.merge(one_thread(), other); }).code(), ErrorCode::invalid_argument);
}

TEST(IvfLsq, BuildMeasuresProbesAndCandidates) {
  const Problem problem = clustered(800, 10, 8, 73);
  const Ivf index = Ivf::build(one_thread(), problem.base, quick, CalibrationOptions{.queries = 50});
  ASSERT_TRUE(index.calibration().has_value());
  EXPECT_TRUE(index.calibration()->reached());
  EXPECT_GT(index.calibration()->candidates, 0U);  // codes need re-ranking
}

TEST(IvfLsqFile, ComesBackAsItWas) {
  const testing_io::TemporaryFolder folder;
  const Problem problem = clustered(400, 30, 10, 74);
  const Ivf index = made_of(problem);
  save(index, folder / "index.nw");
  Ivf loaded = load_ivf(one_thread(), folder / "index.nw");
  EXPECT_EQ(loaded.encoding(), "lsq");
  EXPECT_TRUE(loaded.has_same_quantizers(index));
  EXPECT_EQ(verify(folder / "index.nw").kind, "ivf");
  const auto answer = [&](const Ivf& any) {
    return as_expected(any.search(one_thread(), problem.queries, 9, {.probes = 3}));
  };
  EXPECT_TRUE(same(answer(index), loaded.search(one_thread(), problem.queries, 9, {.probes = 3})));
  save(loaded, folder / "again.nw");
  EXPECT_EQ(testing_io::read_all(folder / "index.nw"), testing_io::read_all(folder / "again.nw"));
  // Rows that come later get the codes that they would have had.
  Ivf more = index.empty_copy();
  more.add(one_thread(), problem.base);
  more.add(one_thread(), problem.queries);
  loaded.add(one_thread(), problem.queries);
  EXPECT_TRUE(same(answer(more), loaded.search(one_thread(), problem.queries, 9, {.probes = 3})));
}

// With and without right checksums.
TEST(IvfLsqFile, ChangedBytesAreFoundOrHarmless) {
  const testing_io::TemporaryFolder folder;
  IvfOptions options = quick;
  std::get<Lsq>(options.encoding).code_bytes = 1;
  save(made_of(clustered(300, 5, 4, 75), options), folder / "index.nw");
  testing_io::expect_changes_found_or_harmless(
      folder / "index.nw", 211, [](const std::filesystem::path& path) {
        const Ivf loaded = load_ivf(one_thread(), path);
        EXPECT_EQ(loaded.search(one_thread(), loaded.centroids(), 3).ids.cols(), 3U);
      });
}

// With valid checksums: adding a vector would take hours.
TEST(IvfLsqFile, TooManyIterationsAreCorrupt) {
  const testing_io::TemporaryFolder folder;
  IvfOptions options = quick;
  std::get<Lsq>(options.encoding).encode_iterations = 12345;
  save(Ivf::train(one_thread(), clustered(300, 10, 8, 76).base, options), folder / "index.nw");
  EXPECT_EQ(load_ivf(one_thread(), folder / "index.nw").size(), 0U);
  std::vector<std::byte> bytes = testing_io::read_all(folder / "index.nw");
  const std::string text = "\"encode_iterations\":12345";
  const auto found = std::ranges::search(bytes, std::as_bytes(std::span(text)));
  ASSERT_FALSE(found.empty());
  std::ranges::fill(found.end() - 5, found.end(), std::byte{'9'});
  testing_io::reseal(bytes);
  testing_io::write_all(folder / "hostile.nw", bytes);
  EXPECT_EQ(error_of([&] { load_ivf(one_thread(), folder / "hostile.nw"); }).code(), ErrorCode::corrupt);
}

TEST(IvfLsq, WrongArgumentsAreNamed) {
  const Problem problem = clustered(300, 10, 8, 76);
  const auto refuses = [&](const Lsq& lsq, const std::string& text) {
    const Error error = error_of([&] { Ivf::train(one_thread(), problem.base, {.encoding = lsq}); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  };
  refuses({.code_bytes = 0}, "code_bytes must be 1 to 32");
  refuses({.code_bytes = 33}, "code_bytes must be 1 to 32");
  refuses({.train_iterations = 0}, "train_iterations must be at least 1");
  refuses({.encode_iterations = 0}, "encode_iterations must be 1 to 65536, got 0");
  refuses({.encode_iterations = 65537}, "encode_iterations must be 1 to 65536, got 65537");
}

TEST(IvfLsqThread, TheSeedDecidesAndThreadsDoNot) {
  const Problem problem = clustered(400, 20, 6, 77);
  const auto codewords = [&](int threads, std::uint64_t seed) {
    const Ivf index = Ivf::train(Context::cpu({.threads = threads, .seed = seed}), problem.base, quick);
    return std::vector<float>(index.additive_codewords().begin(), index.additive_codewords().end());
  };
  EXPECT_EQ(codewords(1, 3), codewords(3, 3));
  EXPECT_NE(codewords(1, 3), codewords(1, 4));
  const Ivf index = made_of(problem);
  const oracle::Answer expected = as_expected(index.search(one_thread(), problem.queries, 8));
  EXPECT_TRUE(same(expected, index.search(Context::cpu({.threads = 3}), problem.queries, 8)));
}

}  // namespace
}  // namespace nearwise

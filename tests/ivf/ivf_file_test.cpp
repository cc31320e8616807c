// Saved inverted files: the same answers, the same bytes, and no damage that goes unnoticed.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "io/changed_metadata.h"
#include "io/expect_error.h"
#include "io/reseal.h"
#include "io/temporary_folder.h"
#include "ivf/ivf_state.h"
#include "nearwise/ivf.h"
#include "nearwise/storage.h"
#include "ops/knn_plan.h"
#include "support/error_of.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::as_expected;
using support::Kind;
using support::Problem;
using support::same;
using testing_io::TemporaryFolder;

const Problem& problem() {
  static const Problem made =
      support::make_problem({.kind = Kind::normal, .rows = 400, .queries = 30, .dim = 10, .seed = 60});
  return made;
}

Ivf product_index() {
  const Context context = Context::cpu({.threads = 1});
  Ivf index = Ivf::train(context, problem().base, {.lists = 6, .encoding = Pq{.code_bytes = 3, .bits = 4}});
  index.add(context, problem().base);
  return index;
}

Ivf flat_index() {
  const Context context = Context::cpu({.threads = 1});
  Ivf index = Ivf::train(context, problem().base, {.metric = Metric::cosine, .lists = 6});
  index.add(context, problem().base);
  return index;
}

void expect_same_answers(const Ivf& left, const Ivf& right) {
  const Context context = Context::cpu({.threads = 1});
  EXPECT_TRUE(same(as_expected(left.search(context, problem().queries, 12, {.probes = 3})),
                   right.search(context, problem().queries, 12, {.probes = 3})));
  EXPECT_TRUE(
      same(as_expected(left.search(context, problem().queries, 4, {.probes = 2, .rerank = problem().base})),
           right.search(context, problem().queries, 4, {.probes = 2, .rerank = problem().base})));
}

// Would catch: rows of a list in another order, ids of one part only, quantizers that differ.
TEST(IvfFile, PartsArePutTogetherAsTheirMergeIsWritten) {
  const TemporaryFolder folder;
  const Context context = Context::cpu({.threads = 1});
  for (const bool is_product : {true, false}) {
    Ivf merged = is_product ? Ivf::train(context, problem().base,
                                         {.lists = 6, .encoding = Pq{.code_bytes = 3, .bits = 4}})
                            : Ivf::train(context, problem().base, {.lists = 6});
    std::vector<std::filesystem::path> files;
    for (const auto& [first, count] : {std::pair{0UL, 150UL}, {150UL, 0UL}, {150UL, 250UL}}) {
      std::vector<Id> ids(count);
      std::iota(ids.begin(), ids.end(), static_cast<Id>(first));
      Ivf part = merged.empty_copy();
      part.add(context, RowsView(problem().base).slice(first, count), ids);
      merged.merge(context, part);
      files.push_back(folder / ("part" + std::to_string(files.size()) + ".nw"));
      save(part, files.back());
    }
    save(merged, folder / "merged.nw");
    merge_ivf_files(Context::cpu(), files, folder / "parts.nw");
    EXPECT_EQ(testing_io::read_all(folder / "parts.nw"), testing_io::read_all(folder / "merged.nw"));
    std::map<std::string, std::string> provenance = merged.provenance();
    provenance["command"] = "merge";
    merged.set_provenance(provenance);
    save(merged, folder / "merged.nw");
    const Context poor = Context::cpu({.memory_limit = 1});
    EXPECT_STREQ(
        support::error_of([&] { merge_ivf_files(poor, files, folder / "no.nw"); }).what(),
        "merge_ivf_files: the memory limit of 1 B is too small, 3.19 KiB would suffice");  // 8 bytes per id
    merge_ivf_files(Context::cpu({.memory_limit = 3264}), files, folder / "parts.nw", {{"command", "merge"}});
    EXPECT_EQ(testing_io::read_all(folder / "parts.nw"), testing_io::read_all(folder / "merged.nw"));
    const Context cancelled = Context::cpu();
    cancelled.cancel();
    EXPECT_EQ(support::error_of([&] { merge_ivf_files(cancelled, files, folder / "no.nw"); }).code(),
              ErrorCode::cancelled);
    save(is_product ? flat_index() : product_index(), folder / "other.nw");
    files.push_back(folder / "other.nw");
    EXPECT_EQ(support::error_of([&] { merge_ivf_files(Context::cpu(), files, folder / "no.nw"); }).code(),
              ErrorCode::invalid_argument);
  }
  EXPECT_EQ(support::error_of([&] { merge_ivf_files(Context::cpu(), {}, folder / "no.nw"); }).code(),
            ErrorCode::invalid_argument);
}

TEST(IvfFile, ComesBackAsItWas) {
  const TemporaryFolder folder;
  const Context context = Context::cpu();
  Ivf product = product_index();
  product.set_probes(5);
  save(product, folder / "product.nw");
  const Ivf loaded = load_ivf(context, folder / "product.nw");
  EXPECT_EQ(loaded.size(), 400U);
  EXPECT_EQ(loaded.probes(), 5U);
  EXPECT_EQ(loaded.metric(), Metric::sqeuclidean);
  EXPECT_EQ(loaded.code_bytes(), 3U);
  ASSERT_NE(loaded.quantizer(), nullptr);
  expect_same_answers(product, loaded);
  const Ivf flat = flat_index();
  save(flat, folder / "flat.nw");
  const Ivf loaded_flat = load_ivf(context, folder / "flat.nw");
  EXPECT_EQ(loaded_flat.quantizer(), nullptr);
  expect_same_answers(flat, loaded_flat);
  EXPECT_EQ(verify(folder / "flat.nw").kind, "ivf");
}

// Scores are taken around the centre of the data, in an index that was trained as in one that was loaded.
TEST(IvfFile, TheCentreOfTheScanComesBack) {
  const TemporaryFolder folder;
  const Ivf index = product_index();
  save(index, folder / "index.nw");
  const Ivf loaded = load_ivf(Context::cpu(), folder / "index.nw");
  ASSERT_EQ(IvfInternals::state_of(index).centre.size(), 10U);
  EXPECT_EQ(IvfInternals::state_of(index).centre, IvfInternals::state_of(loaded).centre);
}

TEST(IvfFile, TheSameIndexGivesTheSameBytes) {
  const TemporaryFolder folder;
  save(product_index(), folder / "one.nw");
  save(product_index(), folder / "two.nw");
  save(load_ivf(Context::cpu(), folder / "one.nw"), folder / "three.nw");
  EXPECT_EQ(testing_io::read_all(folder / "one.nw"), testing_io::read_all(folder / "two.nw"));
  EXPECT_EQ(testing_io::read_all(folder / "one.nw"), testing_io::read_all(folder / "three.nw"));
}

TEST(IvfFile, WhereItComesFromIsKept) {
  const TemporaryFolder folder;
  Ivf index = product_index();
  EXPECT_EQ(index.provenance().at("seed"), "0");
  EXPECT_TRUE(index.provenance().at("version").starts_with("nearwise "));
  EXPECT_EQ(
      index.provenance().at("training"),
      "metric sqeuclidean, lists 6, iterations 10, training_rows 400, encoding pq, code_bytes 3, bits 4 on "
      "400 x 10 f32");
  EXPECT_TRUE(flat_index().provenance().at("training").starts_with("metric cosine, lists 6,"));
  auto more = index.provenance();
  more["base"] = "somewhere";
  index.set_provenance(more);
  save(index, folder / "index.nw");
  EXPECT_EQ(load_ivf(Context::cpu(), folder / "index.nw").provenance(), more);
  EXPECT_EQ(index.empty_copy().provenance(), more);
  EXPECT_EQ(inspect(folder / "index.nw").metadata.at("provenance.base"), "somewhere");
  std::vector<std::byte> bytes = testing_io::read_all(folder / "index.nw");
  const auto put = [&](const std::string& from, const std::string& to) {
    const auto* const begin = reinterpret_cast<const std::byte*>(from.data());
    const auto place = std::search(bytes.begin(), bytes.end(), begin, begin + from.size());
    ASSERT_NE(place, bytes.end());
    std::transform(to.begin(), to.end(), place, [](char letter) { return static_cast<std::byte>(letter); });
    testing_io::reseal(bytes);
    testing_io::write_all(folder / "changed.nw", bytes);
  };
  put("\"somewhere\"", "12345678901");
  EXPECT_EQ(support::error_of([&] { load_ivf(Context::cpu(), folder / "changed.nw"); }).code(),
            ErrorCode::corrupt);
}

// A mapped index changes in memory, its file does not.
TEST(IvfFile, ALoadedIndexGrowsAndShrinks) {
  const TemporaryFolder folder;
  const Context context = Context::cpu({.threads = 1});
  Ivf index = product_index();
  save(index, folder / "index.nw");
  const std::vector<std::byte> before = testing_io::read_all(folder / "index.nw");
  Ivf loaded = load_ivf(context, folder / "index.nw");
  const std::array<Id, 3> gone = {7, 8, 399};
  for (Ivf* each : {static_cast<Ivf*>(&index), &loaded}) {
    EXPECT_EQ(each->remove(context, gone), 3U);
    each->add(context, RowsView(problem().queries).slice(0, 5));
    EXPECT_EQ(each->size(), 402U);
  }
  EXPECT_TRUE(same(as_expected(index.search(context, problem().queries, 9)),
                   loaded.search(context, problem().queries, 9)));
  EXPECT_EQ(testing_io::read_all(folder / "index.nw"), before);
  save(loaded, folder / "index.nw");  // over the file it is mapped from
  EXPECT_EQ(load_ivf(context, folder / "index.nw").size(), 402U);
}

TEST(IvfFile, AnyChangedByteIsFound) {
  const TemporaryFolder folder;
  save(product_index(), folder / "index.nw");
  const std::vector<std::byte> good = testing_io::read_all(folder / "index.nw");
  for (std::size_t place = 0; place < good.size(); place += 61) {
    std::vector<std::byte> bad = good;
    bad[place] ^= std::byte{16};
    testing_io::write_all(folder / "bad.nw", bad);
    EXPECT_THROW(load_ivf(Context::cpu(), folder / "bad.nw"), Error) << place;
  }
}

// A damaged file with recomputed checksums gives an error or an index that works: ASan would see anything
// else.
TEST(IvfFile, HostileFilesAreHarmless) {
  const TemporaryFolder folder;
  const Context context = Context::cpu({.threads = 1});
  const Random random(3, 14);
  for (const bool flat : {false, true}) {
    if (flat)
      save(flat_index(), folder / "index.nw");
    else
      save(product_index(), folder / "index.nw");
    const std::vector<std::byte> good = testing_io::read_all(folder / "index.nw");
    std::size_t refused = 0;
    std::size_t not_merged = 0;
    for (std::uint64_t i = 0; i < 400; ++i) {
      std::vector<std::byte> bad = good;
      for (std::uint64_t change = 0; change <= i % 3; ++change)
        bad[random.below(8 * i + change, bad.size())] =
            static_cast<std::byte>(random.below(8 * i + 4 + change, 256));
      testing_io::reseal(bad);
      testing_io::write_all(folder / "bad.nw", bad);
      const auto is_refused = [](const auto& use) {
        try {
          use();
          return false;
        } catch (const Error& error) {
          EXPECT_TRUE(error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported ||
                      error.code() == ErrorCode::invalid_argument)
              << error.what();
          return true;
        }
      };
      const auto search = [&] {
        const Ivf index = load_ivf(context, folder / "bad.nw");
        if (index.dim() == 10) index.search(context, problem().queries, 5);
      };
      const std::array<std::filesystem::path, 2> parts = {folder / "index.nw", folder / "bad.nw"};
      refused += is_refused(search) ? 1 : 0;
      not_merged += is_refused([&] { merge_ivf_files(Context::cpu(), parts, folder / "merged.nw"); }) ? 1 : 0;
    }
    EXPECT_GT(refused, 20U);
    EXPECT_GT(not_merged, 20U);
  }
}

// Would catch: a number that a reader believes, whatever it is.
TEST(IvfFile, NumbersAreBounded) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "index.nw";
  const Context context = Context::cpu({.threads = 1});
  save(Ivf::build(context, problem().base,
                  {.lists = 6, .encoding = Pq{.code_bytes = 3, .bits = 4}, .vectors = VectorStorage::keep}),
       path);
  nlohmann::json metadata = testing_io::metadata_of(path);
  const std::size_t others = metadata.at("calibration").at("other_k").size();
  ASSERT_GE(others, 1U);
  const std::string largest_k = "other_k/" + std::to_string(others - 1);
  const auto load = [&](const std::filesystem::path& file) { load_ivf(context, file); };
  for (const std::string& number :
       {std::string("neighbors"), std::string("rows"), std::string("candidates"), std::string("recall/rows"),
        std::string("recall_without_rerank/rows"), largest_k + "/k", largest_k + "/recall/rows",
        largest_k + "/recall_without_rerank/rows"})
    testing_io::expect_bound(path, "/calibration/" + number, max_shard_rows, load);

  // Merging reads what it needs by itself.
  metadata["next_id"] = std::uint64_t{1} << 63;
  testing_io::copy_with_metadata(path, folder / "changed.nw", metadata);
  const std::array files = {folder / "changed.nw"};
  EXPECT_ERROR(load_ivf(context, files[0]), corrupt, "next_id is out of range");
  EXPECT_ERROR(merge_ivf_files(context, files, folder / "merged.nw"), corrupt,
               "next_id of at most 9223372036854775807 expected");
}

TEST(IvfFile, AnotherKindIsRefused) {
  const TemporaryFolder folder;
  SavedNeighbors result;
  result.neighbors.ids = Matrix<Id>(1, 1);
  result.neighbors.distances = Matrix<float>(1, 1);
  result.neighbors.ids(0, 0) = 0;
  result.neighbors.distances(0, 0) = 0;
  save(result, folder / "result.nw");
  EXPECT_EQ(support::error_of([&] { load_ivf(Context::cpu(), folder / "result.nw"); }).code(),
            ErrorCode::invalid_argument);
  EXPECT_THROW(load_ivf(Context::cpu(), folder / "none.nw"), Error);
}

}  // namespace
}  // namespace nearwise

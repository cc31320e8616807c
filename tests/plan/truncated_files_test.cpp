// Every operation that reads a mapped file, while someone truncates it: Error(corrupt) naming the file, no
// result, and the objects involved as they were. Here, above all layers, because all of them read files.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "io/expect_error.h"
#include "io/temporary_folder.h"
#include "io/truncating_calls.h"
#include "nearwise/nearwise.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::as_expected;
using support::same;
using testing_io::TemporaryFolder;
using testing_io::truncate_in_place;
using testing_io::TruncatingCalls;
namespace fs = std::filesystem;

constexpr const char* message = "the file was truncated while in use";
constexpr std::size_t count = 3000;
constexpr std::size_t dim = 16;
constexpr std::uint64_t page = 4096;

const support::Rows& vectors() {
  static const support::Rows made(support::generate(support::Kind::normal, count, dim, 4), ElementType::f32);
  return made;
}

void write(const fs::path& path, const RowsView& rows) {
  VectorWriter writer(path, rows.type(), rows.dim());
  writer.append(rows);
  writer.commit();
}

class TruncatedFiles : public ::testing::Test {
 protected:
  // On vectors of which only the first page is left when the operation begins, and once more, when the loss
  // is known.
  void expect_truncated(const std::string& name, const std::function<void(const RowsView&)>& operation) {
    SCOPED_TRACE(name);
    write(path, vectors());
    const VectorFile file = VectorFile::open(path);
    operation(file.rows());  // it works
    truncate_in_place(path, page);
    EXPECT_ERROR(operation(file.rows()), corrupt, "vectors.fbin: " + std::string(message));
    EXPECT_ERROR(operation(file.rows()), corrupt, "vectors.fbin: " + std::string(message));
    operation(vectors());  // others do not care
  }

  const TemporaryFolder folder;
  const fs::path path = folder / "vectors.fbin";
  const Context context = Context::cpu({.threads = 2, .seed = 3});
};

TEST_F(TruncatedFiles, ExactSearch) {
  const RowsView some = vectors().view().slice(10, 30);
  expect_truncated("knn", [&](const RowsView& rows) { knn(context, some, rows, 5); });
  expect_truncated("knn of one", [&](const RowsView& rows) { knn(context, some.slice(0, 1), rows, 5); });
  expect_truncated("knn on one thread", [&](const RowsView& rows) {
    knn(Context::cpu({.threads = 1}), some.slice(0, 1), rows, 5);
  });
  expect_truncated("knn of queries", [&](const RowsView& rows) { knn(context, rows, some, 5); });
  expect_truncated("range_search", [&](const RowsView& rows) { range_search(context, some, rows, 1.0F); });
  expect_truncated("exact_knn_graph", [&](const RowsView& rows) { exact_knn_graph(context, rows, 5); });
  expect_truncated("Exact",
                   [&](const RowsView& rows) { Exact::prepare(context, rows).search(context, some, 5); });
  expect_truncated("select_k", [&](const RowsView& rows) {
    select_k(context,
             MatrixView<const float>(reinterpret_cast<const float*>(rows.data()), rows.rows(), rows.dim()),
             3);
  });
}

TEST_F(TruncatedFiles, PreparedSearch) {
  write(path, vectors());
  const VectorFile file = VectorFile::open(path);
  const Exact exact = Exact::prepare(context, file.rows());
  const RowsView some = vectors().view().slice(1000, 30);
  exact.search(context, some, 5);
  truncate_in_place(path, page);
  EXPECT_ERROR(exact.search(context, some, 5), corrupt, message);
  EXPECT_ERROR(exact.range_search(context, some, 1.0F), corrupt, message);
}

TEST_F(TruncatedFiles, Clustering) {
  const MatrixView<const float> centroids(reinterpret_cast<const float*>(vectors().view().data()), 9, dim);
  expect_truncated("train_kmeans", [&](const RowsView& rows) { train_kmeans(context, rows, 20); });
  expect_truncated("of spheres", [&](const RowsView& rows) {
    train_kmeans(context, rows, 20, {.metric = Metric::cosine});
  });
  expect_truncated("random seeds", [&](const RowsView& rows) {
    train_kmeans(context, rows, 20, {.iterations = 1, .seeding = Seeding::random});
  });
  expect_truncated("mini-batches",
                   [&](const RowsView& rows) { train_kmeans(context, rows, 20, {.batch_size = 500}); });
  expect_truncated("hierarchical",
                   [&](const RowsView& rows) { train_hierarchical_kmeans(context, rows, 20); });
  expect_truncated("assign", [&](const RowsView& rows) { assign(context, rows, centroids); });
  expect_truncated("seed_kmeans", [&](const RowsView& rows) { seed_kmeans(context, rows, 90); });
  expect_truncated("seed_kmeans at random", [&](const RowsView& rows) {
    seed_kmeans(context, rows, 90, {.seeding = Seeding::random});
  });
  expect_truncated("sum_clusters",
                   [&](const RowsView& rows) { sum_clusters(context, {.rows = rows}, centroids); });
  expect_truncated("draw_split_rows", [&](const RowsView& rows) {
    const std::vector<ClusterSplit> splits = {{.cluster = 3, .rows = 2}};
    draw_split_rows(context, {.rows = rows}, centroids, centroids, splits, 0);
  });
}

TEST_F(TruncatedFiles, Quantizers) {
  const ProductQuantizerOptions options = {.parts = 4, .bits = 4, .iterations = 2};
  expect_truncated("ProductQuantizer.train",
                   [&](const RowsView& rows) { ProductQuantizer::train(context, rows, options); });
  expect_truncated("of a sample", [&](const RowsView& rows) {
    ProductQuantizer::train(context, rows, {.parts = 4, .bits = 4, .iterations = 1, .training_rows = 500});
  });
  const ProductQuantizer product = ProductQuantizer::train(context, vectors(), options);
  expect_truncated("encode", [&](const RowsView& rows) { product.encode(context, rows); });
  expect_truncated("tables", [&](const RowsView& rows) { product.tables(context, rows); });
  expect_truncated("error", [&](const RowsView& rows) { product.error(context, rows); });
  expect_truncated("decode", [&](const RowsView& rows) {
    product.decode(context, {reinterpret_cast<const std::uint8_t*>(rows.data()), count * dim, 2});
  });

  expect_truncated("OptimizedProductQuantizer.train", [&](const RowsView& rows) {
    OptimizedProductQuantizer::train(context, rows, {.quantizer = options, .rounds = 1});
  });
  const OptimizedProductQuantizer optimized =
      OptimizedProductQuantizer::train(context, vectors(), {.quantizer = options, .rounds = 1});
  expect_truncated("optimized encode", [&](const RowsView& rows) { optimized.encode(context, rows); });
  expect_truncated("optimized tables", [&](const RowsView& rows) { optimized.tables(context, rows); });
  expect_truncated("optimized error", [&](const RowsView& rows) { optimized.error(context, rows); });

  const AdditiveQuantizerOptions additive_options = {.codebooks = 2, .rounds = 1, .iterations = 1};
  expect_truncated("AdditiveQuantizer.train",
                   [&](const RowsView& rows) { AdditiveQuantizer::train(context, rows, additive_options); });
  const AdditiveQuantizer additive = AdditiveQuantizer::train(context, vectors(), additive_options);
  const Matrix<std::uint8_t> codes = additive.encode(context, vectors().view().slice(0, 50));
  expect_truncated("additive encode", [&](const RowsView& rows) { additive.encode(context, rows); });
  expect_truncated("additive search",
                   [&](const RowsView& rows) { additive.search(context, rows, codes, 3); });
  expect_truncated("additive error", [&](const RowsView& rows) { additive.error(context, rows); });

  expect_truncated("Rotation.pca", [&](const RowsView& rows) { Rotation::pca(context, rows, 4); });
  const Rotation rotation = Rotation::pca(context, vectors(), 4);
  expect_truncated("Rotation.apply", [&](const RowsView& rows) { rotation.apply(context, rows); });
}

TEST_F(TruncatedFiles, InvertedFilesOfTheirVectors) {
  const RowsView some = vectors().view().slice(10, 30);
  for (const Encoding& encoding : {Encoding(Flat{}), Encoding(Pq{.code_bytes = 4, .bits = 4})}) {
    const IvfOptions options = {.lists = 12, .encoding = encoding};
    expect_truncated("train", [&](const RowsView& rows) { Ivf::train(context, rows, options); });
    expect_truncated("build", [&](const RowsView& rows) {
      Ivf::build(context, rows, options, CalibrationOptions{.queries = 40});
    });
    Ivf index = Ivf::train(context, vectors(), options);
    expect_truncated("add", [&](const RowsView& rows) {
      const std::size_t before = index.size();
      try {
        index.add(context, rows);
      } catch (const Error&) {
        EXPECT_EQ(index.size(), before);
        throw;
      }
    });
    Ivf full = Ivf::train(context, vectors(), options);
    full.add(context, vectors());
    expect_truncated("search for", [&](const RowsView& rows) { full.search(context, rows, 3); });
    if (!std::holds_alternative<Flat>(encoding))
      expect_truncated("re-rank", [&](const RowsView& rows) {
        full.search(context, some, 3, {.rerank = rows, .candidates = 200});
      });
    expect_truncated("calibrate",
                     [&](const RowsView& rows) { full.calibrate(context, rows, {.queries = 40}); });
  }
}

TEST_F(TruncatedFiles, Graphs) {
  expect_truncated("build", [&](const RowsView& rows) { build_knn_graph(context, rows, {.degree = 5}); });
  const KnnGraph graph = build_knn_graph(context, vectors(), {.degree = 5});
  const KnnGraph half = build_knn_graph(context, vectors().view().slice(0, count / 2), {.degree = 5});
  const KnnGraph rest = build_knn_graph(context, vectors().view().slice(count / 2, count / 2), {.degree = 5});
  expect_truncated("merge", [&](const RowsView& rows) { merge_knn_graphs(context, rows, half, rest); });
  expect_truncated("add", [&](const RowsView& rows) { add_to_knn_graph(context, rows, half); });
  expect_truncated("remove", [&](const RowsView& rows) {
    remove_from_knn_graph(context, rows, graph, std::vector<Id>{5, 2000, 17});
  });
  expect_truncated("measure_recall", [&](const RowsView& rows) {
    measure_recall(context, rows, graph.neighbors, Metric::sqeuclidean, 100);
  });
}

// An index in a mapped file. Would catch: zeros taken for codes, in answers, in copies and in other indexes.
TEST_F(TruncatedFiles, MappedIndexes) {
  const RowsView some = vectors().view().slice(10, 30);
  for (const Encoding& encoding : {Encoding(Flat{}), Encoding(Pq{.code_bytes = 16, .bits = 8}),
                                   Encoding(Lsq{.code_bytes = 8, .train_iterations = 1})}) {
    SCOPED_TRACE(encoding.index());
    Ivf made = Ivf::train(context, vectors(), {.lists = 12, .encoding = encoding});
    made.add(context, vectors());
    Ivf other = made.part(context, 0, 500);
    const oracle::Answer before = as_expected(other.search(context, some, 4, {.probes = 12}));
    const auto with_truncated = [&](const std::function<void(Ivf&)>& operation) {
      save(made, folder / "index.nw");
      Ivf mapped = load_ivf(context, folder / "index.nw");
      truncate_in_place(folder / "index.nw", page);
      EXPECT_ERROR(operation(mapped), corrupt, "index.nw: " + std::string(message));
      EXPECT_ERROR(operation(mapped), corrupt, "index.nw: " + std::string(message));
      EXPECT_EQ(mapped.size(), count);
      EXPECT_EQ(mapped.next_id(), Id{count});
    };
    with_truncated([&](Ivf& index) { index.search(context, some, 4, {.probes = 12}); });
    with_truncated([&](Ivf& index) { index.search(context, some.slice(0, 1), 4, {.probes = 12}); });
    with_truncated([&](Ivf& index) { save(index, folder / "copy.nw"); });
    with_truncated([&](Ivf& index) { index.part(context, 0, 2000); });
    with_truncated([&](Ivf& index) { index.add(context, some); });
    with_truncated([&](Ivf& index) { index.remove(context, std::vector<Id>{1, 2, 3}); });
    with_truncated([&](Ivf& index) { other.merge(context, index); });
    with_truncated([&](Ivf& index) { index.calibrate(context, vectors(), {.queries = 40}); });
    EXPECT_FALSE(fs::exists(folder / "copy.nw"));
    EXPECT_EQ(other.size(), 500U);
    EXPECT_TRUE(same(before, other.search(context, some, 4, {.probes = 12})));

    // Loaded into memory list by list, an index does not need the file any more.
    save(made, folder / "index.nw");
    Ivf mapped = load_ivf(context, folder / "index.nw");
    std::vector<Id> all(count);
    std::iota(all.begin(), all.end(), 0);
    mapped.remove(context, all);
    truncate_in_place(folder / "index.nw", page);
    mapped.merge(context, other);
    EXPECT_TRUE(same(before, mapped.search(context, some, 4, {.probes = 12})));
  }
}

// A callback for every report, whatever the time.
Context with_progress(const ProgressCallback& progress) {
  return Context::cpu(
      {.threads = 1, .seed = 3, .progress = progress, .clock = [time = 0.0]() mutable { return time += 1; }});
}

// Would catch: vectors that stay in the index although their file was lost while they were appended.
TEST_F(TruncatedFiles, AnIndexTakesLateLossesBack) {
  const RowsView some = vectors().view().slice(10, 30);
  Ivf index = Ivf::train(context, vectors(), {.lists = 12});
  index.add(context, some);
  const oracle::Answer before = as_expected(index.search(context, some, 4, {.probes = 12}));
  write(path, vectors());
  {
    const VectorFile file = VectorFile::open(path);
    const Context truncating =
        with_progress([&](const Progress&) { truncate_in_place(path, page); });  // after they were assigned
    EXPECT_ERROR(index.add(truncating, file.rows()), corrupt, message);
  }
  EXPECT_EQ(index.size(), 30U);
  EXPECT_EQ(index.next_id(), 30);
  EXPECT_TRUE(same(before, index.search(context, some, 4, {.probes = 12})));

  Ivf full = index.empty_copy();
  std::vector<Id> later(count);
  std::iota(later.begin(), later.end(), 1'000);
  full.add(context, vectors(), later);
  save(full, folder / "full.nw");
  {
    const Ivf mapped = load_ivf(context, folder / "full.nw");
    const Context truncating =
        with_progress([&](const Progress&) { truncate_in_place(folder / "full.nw", page); });
    EXPECT_ERROR(index.merge(truncating, mapped), corrupt, message);
  }
  EXPECT_EQ(index.size(), 30U);
  EXPECT_EQ(index.next_id(), 30);
  EXPECT_TRUE(same(before, index.search(context, some, 4, {.probes = 12})));
  index.add(context, vectors());
  EXPECT_EQ(index.size(), 30U + count);
}

TEST_F(TruncatedFiles, Loads) {
  const auto expect_lost = [&](const std::function<void(const fs::path&)>& save_it,
                               const std::function<void(const fs::path&)>& load_it) {
    const fs::path file = folder / "file.nw";
    save_it(file);
    const std::uint64_t bytes = fs::file_size(file);
    for (const std::uint64_t kept :
         {std::uint64_t{0}, page, bytes / 2 / page * page, (bytes - 1) / page * page}) {
      save_it(file);
      {
        const TruncatingCalls calls(kept);
        EXPECT_ERROR(load_it(file), corrupt, "file.nw: " + std::string(message)) << kept;
      }
      save_it(file);
      load_it(file);
    }
  };
  const KnnGraph graph = build_knn_graph(context, vectors(), {.degree = 5});
  expect_lost([&](const fs::path& file) { save(graph, file); }, load_knn_graph);
  const ProductQuantizer product = ProductQuantizer::train(context, vectors(), {.parts = 4});
  expect_lost([&](const fs::path& file) { save(product, file); }, load_product_quantizer);
  const OptimizedProductQuantizer optimized =
      OptimizedProductQuantizer::train(context, vectors(), {.quantizer = {.parts = 4}, .rounds = 1});
  expect_lost([&](const fs::path& file) { save(optimized, file); }, load_optimized_product_quantizer);
  const AdditiveQuantizer additive =
      AdditiveQuantizer::train(context, vectors(), {.codebooks = 2, .rounds = 1, .iterations = 1});
  expect_lost([&](const fs::path& file) { save(additive, file); }, load_additive_quantizer);
  Ivf index = Ivf::train(context, vectors(), {.lists = 12, .encoding = Pq{.code_bytes = 4}});
  index.add(context, vectors());
  expect_lost([&](const fs::path& file) { save(index, file); },
              [&](const fs::path& file) { load_ivf(context, file); });
  expect_lost(
      [&](const fs::path& file) { save(index, file); },
      [&](const fs::path& file) { merge_ivf_files(context, std::vector{file}, folder / "merged.nw"); });
}

// Would catch: a work file made of zeros that counts as done.
TEST_F(TruncatedFiles, OfPlansAreMadeAgain) {
  write(path, vectors());
  const PlanFiles files = {.vectors = path, .work = folder / "work", .output = folder / "graph.nw"};
  const Context own = Context::cpu({.threads = 2, .memory_limit = 100 << 20, .seed = 3});
  const Plan plan = plan_graph(own, files, {.degree = 5});
  plan.run(own);
  const auto expected = testing_io::read_all(files.output);
  for (const PlannedTask& task : plan.tasks()) {
    if (task.if_needed) continue;
    SCOPED_TRACE(task.name);
    fs::remove_all(files.work);
    fs::remove(files.output);
    // The files of all tasks before it lose what the task maps of them, once.
    for (const PlannedTask& before : plan.tasks()) {
      if (before.name == task.name) break;
      plan.run_task(own, before.name);
    }
    bool thrown = false;
    {
      const TruncatingCalls calls(page);
      try {
        plan.run_task(own, task.name);
      } catch (const Error& error) {
        thrown = true;
        EXPECT_TRUE(error.code() == ErrorCode::corrupt || error.code() == ErrorCode::invalid_argument)
            << error.what();
      }
    }
    EXPECT_TRUE(thrown);
    write(path, vectors());
    plan.run(own);
    EXPECT_EQ(testing_io::read_all(files.output), expected);
  }
}

}  // namespace
}  // namespace nearwise

// Inverted files: trained, filled, changed, searched, measured, saved, merged as files, and spread over
// several contexts.
#include "nearwise/ivf.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "golden_answers/data.h"
#include "golden_answers/golden.h"
#include "io/temporary_folder.h"
#include "nearwise/sharded.h"

namespace nearwise::golden {
namespace {

using support::Rows;
using testing_io::TemporaryFolder;

constexpr std::size_t rows_count = 600;
constexpr std::size_t lists = 12;
constexpr std::size_t dim = 24;

// An encoding of inverted files.
struct NamedEncoding {
  std::string name;
  bool few_codewords = false;  // the emulated device takes minutes to train many: there the CPU does
  std::function<Ivf(const Context&, RowsView, Metric)> train;
  std::function<Ivf(const Context&, RowsView, Metric, const CalibrationOptions&)> build;
};

NamedEncoding encoding(const std::string& name, bool few_codewords, const IvfOptions& defaults) {
  const auto of_metric = [defaults](Metric metric) {
    IvfOptions options = defaults;
    options.metric = metric;
    options.lists = lists;
    options.iterations = 4;
    return options;
  };
  return {
      name, few_codewords,
      [of_metric, few_codewords](const Context& context, RowsView rows, Metric metric) {
        const bool elsewhere = on_device() && !few_codewords;
        // Without vectors: GoldenIvf.KeptVectors has them.
        IvfOptions options = of_metric(metric);
        if (!std::holds_alternative<Flat>(options.encoding)) options.vectors = VectorStorage::none;
        return Ivf::train(elsewhere ? Context::cpu({.threads = 2, .seed = 7}) : context, rows, options);
      },
      [of_metric](const Context& context, RowsView rows, Metric metric, const CalibrationOptions& measure) {
        return Ivf::build(context, rows, of_metric(metric), measure);
      }};
}

// Additive codewords without rounds are those of a residual quantizer, which need no system of equations.
std::vector<NamedEncoding> every_encoding() {
  return {encoding("ivf_flat", true, {}), encoding("ivf_pq.8_bits", false, {.encoding = Pq{.code_bytes = 6}}),
          encoding("ivf_pq.4_bits", true, {.encoding = Pq{.code_bytes = 6, .bits = 4}}),
          encoding("ivf_lsq.residual", false,
                   {.encoding = Lsq{.code_bytes = 3, .rounds = 0, .encode_iterations = 2}})};
}

NamedEncoding trained_additive_encoding() {
  return encoding(
      "ivf_lsq.trained", false,
      {.encoding = Lsq{.code_bytes = 3, .rounds = 2, .train_iterations = 2, .encode_iterations = 2}});
}

std::vector<Id> numbers(std::size_t first, std::size_t count) {
  std::vector<Id> ids(count);
  std::iota(ids.begin(), ids.end(), static_cast<Id>(first));
  return ids;
}

// The rows that do not come in order have ids of their own, the last ones are numbered by the index.
void fill(const Context& context, Ivf& index, RowsView rows) {
  index.add(context, rows.slice(300, 250), numbers(300, 250));
  index.add(context, rows.slice(0, 300), numbers(0, 300));
  index.add(context, rows.slice(550, rows.rows() - 550));
}

void add_structure(Digest& digest, const Ivf& index) {
  digest.add(index.size());
  digest.add(index.next_id());
  digest.add(index.probes());
  digest.add(index.candidates());
  for (std::size_t list = 0; list < index.lists(); ++list) digest.add(index.list_size(list));
}

void add_quantizers(Digest& digest, const Ivf& index) {
  digest.add(index.centroids());
  digest.add(index.code_bytes());
  if (index.quantizer() != nullptr) digest.add(index.quantizer()->codebooks());
  digest.add(index.additive_codewords());
}

void add_searches(Digest& digest, const Context& context, const Ivf& index, RowsView queries, RowsView rows) {
  for (const std::size_t probes : {1, 4, 12}) {
    digest.add(index.search(context, queries, 10, {.probes = probes}));
    digest.add(index.search(context, queries, 10, {.probes = probes, .rerank = rows, .candidates = 40}));
  }
  digest.add(index.search(context, queries.slice(2, 1), 5, {.probes = 3}));
}

void expect_index(const NamedEncoding& encoding, const std::string& ending, RowsView rows, RowsView queries,
                  Metric metric, const std::vector<Context>& contexts) {
  const std::string name = encoding.name + "." + ending;
  for (const Context& context : contexts) {
    Ivf index = encoding.train(context, rows, metric);
    expect(name + ".quantizers", [&](Digest& digest) { add_quantizers(digest, index); });
    fill(context, index, rows);
    expect(name + ".searches", [&](Digest& digest) {
      add_structure(digest, index);
      add_searches(digest, context, index, queries, rows);
    });
  }
}

TEST(GoldenIvf, SearchesOfEveryMetric) {
  const Rows rows = make_rows(rows_count, dim, 41);
  // With this many vectors the rounds of additive training improve the initial codewords.
  const Rows many_rows = make_rows(1500, dim, 41);
  const Rows queries = make_rows(20, dim, 42);
  std::size_t number = 0;
  for (const Metric metric : every_metric) {
    const std::string ending(name(metric));
    if (!is_due(number++, 4)) continue;
    for (const NamedEncoding& encoding : every_encoding())
      expect_index(encoding, ending, rows, queries, metric, every_context());
    if (!on_device())
      expect_index(trained_additive_encoding(), ending, many_rows, queries, metric, {context()});
  }
}

TEST(GoldenIvf, SearchesOfEveryType) {
  std::size_t number = 0;
  for (const ElementType type : every_type) {
    if (!is_due(number++, 3)) continue;
    const Rows rows = make_rows(rows_count, dim, 41, type);
    const Rows queries = make_rows(20, dim, 42, type);
    for (const NamedEncoding& encoding : every_encoding())
      expect_index(encoding, std::string(name(type)), rows, queries, Metric::sqeuclidean, {context()});
  }
}

TEST(GoldenIvf, ChangesAndFiles) {
  const TemporaryFolder folder;
  const Rows rows = make_rows(rows_count, dim, 43);
  const Rows queries = make_rows(20, dim, 44);
  for (const NamedEncoding& encoding : every_encoding()) {
    const Context context = golden::context();
    const auto expect_searches = [&](const std::string& name, const Ivf& index) {
      expect(encoding.name + "." + name, [&](Digest& digest) {
        add_structure(digest, index);
        add_searches(digest, context, index, queries, rows);
      });
    };
    Ivf index = encoding.train(context, rows, Metric::sqeuclidean);
    fill(context, index, rows);
    save(index, folder / "whole.nw");
    expect_container("file." + encoding.name, folder / "whole.nw");
    expect_searches("whole", index);
    expect_searches("whole", load_ivf(context, folder / "whole.nw"));

    const Ivf first = index.part(context, 0, 250);
    const Ivf second = index.part(context, 250, rows_count - 250);
    expect_searches("part", first);
    Ivf merged = index.empty_copy();
    merged.merge(context, first);
    merged.merge(context, second);
    expect_searches("whole", merged);
    save(first, folder / "first.nw");
    save(second, folder / "second.nw");
    const std::vector<std::filesystem::path> files = {folder / "first.nw", folder / "second.nw"};
    merge_ivf_files(context, files, folder / "merged.nw", {{"parts", "two"}});
    expect_container("file.merged." + encoding.name, folder / "merged.nw");

    std::vector<Id> removed = numbers(17, 90);
    removed.push_back(590);
    EXPECT_EQ(index.remove(context, removed), removed.size());
    expect_searches("removed", index);
    index.add(context, rows.view().slice(17, 40), numbers(17, 40));
    expect_searches("added_again", index);
    save(index, folder / "changed.nw");
    expect_container("file.changed." + encoding.name, folder / "changed.nw");
  }
}

TEST(GoldenIvf, KeptVectors) {
  const TemporaryFolder folder;
  const Rows rows = make_rows(rows_count, dim, 43);
  const Rows queries = make_rows(20, dim, 44);
  for (const VectorStorage vectors : {VectorStorage::keep, VectorStorage::f16, VectorStorage::u8}) {
    const std::string ending(name(vectors));
    Ivf index = Ivf::train(
        golden::context(), rows,
        {.lists = lists, .iterations = 4, .encoding = Pq{.code_bytes = 6, .bits = 4}, .vectors = vectors});
    fill(golden::context(), index, rows);
    for (const Context& context : every_context())
      expect("ivf_pq.vectors." + ending, [&](Digest& digest) {
        for (const std::size_t probes : {1, 4, 12}) {
          digest.add(index.search(context, queries, 10, {.probes = probes}));
          digest.add(index.search(context, queries, 10, {.probes = probes, .candidates = 40}));
        }
        digest.add(index.search(context, queries.view().slice(2, 1), 5, {.probes = 3}));
      });
    expect("ivf_pq.get." + ending, [&](Digest& digest) {
      const std::vector<Id> ids = index.ids();
      Matrix<float> all(ids.size(), dim);
      index.get(ids, all.view());
      digest.add(all);
    });
    save(index, folder / "index.nw");
    expect_container("file.ivf_pq.vectors." + ending, folder / "index.nw");
  }
}

void add_measured(Digest& digest, const Calibration& measured) {
  digest.add(measured.probes);
  digest.add(measured.candidates.value_or(0));
  digest.add(measured.recall.value);
  digest.add(measured.recall_without_rerank.value);
  digest.add(measured.target_recall);
  digest.add(measured.recall.rows);
  digest.add(measured.neighbors);
  digest.add(measured.rows);
}

TEST(GoldenIvf, BuildsAndMeasures) {
  const TemporaryFolder folder;
  const Rows rows = make_rows(1500, dim, 45);
  std::vector<NamedEncoding> encodings = every_encoding();
  encodings.push_back(trained_additive_encoding());
  for (const NamedEncoding& encoding : encodings) {
    if (on_device() && !encoding.few_codewords) continue;
    const Context context = golden::context();
    Ivf index = encoding.build(context, rows, Metric::cosine, {.target_recall = 0.8, .queries = 100});
    expect(encoding.name + ".measured", [&](Digest& digest) {
      add_measured(digest, index.calibration().value());
      add_measured(digest,
                   index.calibrate(context, rows, {.target_recall = 0.6, .queries = 80, .rerank = false}));
      add_structure(digest, index);
    });
    save(index, folder / "built.nw");
    expect_container(encoding.name + ".built.file", folder / "built.nw");
  }
}

std::vector<Context> several_contexts() {
  return {context(), context(), context({.threads = 1, .seed = 7}), context()};
}

// Answers of one index: under one name.
TEST(GoldenIvf, Sharded) {
  const Rows rows = make_rows(rows_count, dim, 46);
  const Rows queries = make_rows(20, dim, 47);
  const std::vector<Context> contexts = several_contexts();
  for (const NamedEncoding& encoding : every_encoding()) {
    Ivf index = encoding.train(context(), rows, Metric::sqeuclidean);
    index.add(context(), rows);
    const auto expect_same = [&](const auto& searched) {
      expect("sharded." + encoding.name, [&](Digest& digest) {
        digest.add(searched.search(context(), queries, 10, {.probes = 4}));
        digest.add(searched.search(context(), queries, 10, {.probes = 4, .rerank = rows, .candidates = 40}));
      });
    };
    expect_same(index);
    expect_same(shard_ivf(contexts, index));
    expect_same(replicate_ivf(contexts, index));
    expect_same(shard_and_replicate_ivf(contexts, 2, index));
  }
}

TEST(GoldenIvf, ShardedExact) {
  const Rows rows = make_rows(rows_count, dim, 46);
  const Rows queries = make_rows(20, dim, 47);
  const std::vector<Context> contexts = several_contexts();
  for (const Metric metric : every_metric) {
    const std::string name = "sharded.exact." + std::string(nearwise::name(metric));
    expect_answer(name, Exact::prepare(context(), rows, {.metric = metric}).search(context(), queries, 10));
    expect_answer(name, shard_exact(contexts, rows, {.metric = metric}).search(context(), queries, 10));
    expect_answer(name, replicate_exact(contexts, rows, {.metric = metric}).search(context(), queries, 10));
    expect_answer(
        name,
        shard_and_replicate_exact(contexts, 2, rows, {.metric = metric}).search(context(), queries, 10));
  }
}

}  // namespace
}  // namespace nearwise::golden

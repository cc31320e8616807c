// Writes seed corpora for the fuzz targets, made by our own writers: make_seeds FOLDER
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/math/random.h"
#include "io/container/container_writer.h"
#include "nearwise/nearwise.h"
#include "small_plan.h"

namespace fs = std::filesystem;

namespace {

void make_containers(const fs::path& folder) {
  using nearwise::container::Element;
  fs::create_directories(folder);
  nearwise::SavedNeighbors result;
  result.neighbors.ids = nearwise::Matrix<nearwise::Id>(3, 2);
  result.neighbors.distances = nearwise::Matrix<float>(3, 2);
  for (int i = 0; i < 6; ++i) {
    result.neighbors.ids.data()[i] = i - 1;
    result.neighbors.distances.data()[i] = 0.5F * static_cast<float>(i);
  }
  result.provenance = {{"command", "make_seeds"}};
  nearwise::save(result, folder / "neighbors.nw");
  nearwise::ContainerWriter(folder / "empty.nw", "empty").commit();

  nearwise::ContainerWriter writer(folder / "sections.nw", "sample");
  writer.write_metadata({{"numbers", {1, 2.5, -3}}, {"nested", {{"text", "x"}, {"nothing", nullptr}}}});
  writer.begin_section("optional", Element::f64, {.columns = 2, .presence = nearwise::Presence::optional});
  writer.append(std::vector<std::byte>(64));
  writer.begin_section("none", Element::bf16, {.columns = 9});
  writer.begin_section("bytes", Element::bytes);
  writer.append(std::vector<std::byte>(5, std::byte{1}));
  writer.commit();
}

// The suffix's number, as open_vectors has them, then the file.
void make_vectors(const fs::path& folder) {
  fs::create_directories(folder);
  const auto add = [&](char number, const fs::path& file, const std::string& name) {
    std::ifstream input(file, std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
    std::ofstream(folder / name, std::ios::binary) << number << content;
    fs::remove(file);
  };
  using nearwise::ElementType;
  struct Case {
    char number;
    const char* suffix;
    ElementType type;
  };
  constexpr Case cases[] = {
      {0, ".npy", ElementType::f32},    {0, ".npy", ElementType::u8},       {1, ".fbin", ElementType::f32},
      {2, ".f16bin", ElementType::f16}, {3, ".bf16bin", ElementType::bf16}, {4, ".u8bin", ElementType::u8},
      {5, ".i8bin", ElementType::i8},   {7, ".fvecs", ElementType::f32},    {8, ".bvecs", ElementType::u8}};
  const std::vector<std::byte> rows(4096, std::byte{1});
  int made = 0;
  for (const Case& format : cases) {
    const fs::path file = folder / (std::string("seed") + format.suffix);
    nearwise::VectorWriter writer(file, format.type, 3);
    writer.append({rows.data(), format.type, 4, 3, 3 * nearwise::element_size(format.type)});
    writer.commit();
    add(format.number, file, "vectors" + std::to_string(made++));
  }
  nearwise::Neighbors neighbors{nearwise::Matrix<nearwise::Id>(3, 2), nearwise::Matrix<float>(3, 2)};
  std::memset(neighbors.ids.data(), 0, 6 * sizeof(nearwise::Id));
  std::memset(neighbors.distances.data(), 0, 6 * sizeof(float));
  for (const auto& [number, suffix] : {std::pair{0, ".npy"}, {6, ".ibin"}, {9, ".ivecs"}, {10, ".bin"}}) {
    const fs::path file = folder / (std::string("seed") + suffix);
    nearwise::write_neighbors(file, neighbors);
    add(static_cast<char>(number), file, "ids" + std::to_string(made++));
  }
}

// Bytes of exact_knn: what the head chooses varies from seed to seed, the elements are noise.
void make_searches(const fs::path& folder) {
  fs::create_directories(folder);
  const nearwise::Random random(1);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::ofstream output(folder / ("search" + std::to_string(seed)), std::ios::binary);
    const std::uint64_t length = 64 + random.below(2 * seed, 1500);
    for (std::uint64_t i = 0; i < length; ++i)
      output.put(static_cast<char>(random.bits(1000 + 2000 * seed + i) & 0xFFU));
  }
}

// An inverted file whose vectors are rows of another file, which is no seed and must stay where it is.
void make_linked_index(const fs::path& folder, const nearwise::Context& context,
                       const nearwise::RowsView& vectors) {
  using namespace nearwise;
  const fs::path file = folder / "linked_vectors.fbin";
  VectorWriter writer(file, ElementType::f32, vectors.dim());
  writer.append(vectors);
  writer.commit();
  Ivf index = Ivf::train(context, vectors,
                         {.lists = 3,
                          .encoding = Pq{.code_bytes = 2, .bits = 4},
                          .vectors = VectorStorage::file,
                          .vector_file = file});
  index.add(context, vectors);
  index.calibrate(context, {.queries = 10});
  save(index, folder / "index_pq" / "linked.nw");
}

// Objects of every kind, as small as their kinds allow, in a folder for each.
void make_objects(const fs::path& folder) {
  using namespace nearwise;
  const Context context = Context::cpu({.threads = 1});
  constexpr std::size_t rows = 300;
  constexpr std::size_t dim = 4;
  std::vector<float> values(rows * dim);
  const Random random(2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random.normal(i));
  const MatrixView<const float> vectors(values.data(), rows, dim);
  const auto at = [&](const char* kind) {
    fs::create_directories(folder / kind);
    return folder / kind / "seed.nw";
  };
  const auto save_index = [&](const char* kind, const Encoding& encoding) {
    Ivf index = Ivf::train(context, vectors, {.lists = 3, .encoding = encoding});
    index.add(context, vectors.slice(0, 40));
    index.calibrate(context, vectors, {.queries = 10});
    save(index, at(kind));
  };
  save_index("index_flat", Flat{});
  save_index("index_pq", Pq{.code_bytes = 2, .bits = 4});
  make_linked_index(folder, context, vectors.slice(0, 40));
  save_index("index_lsq", Lsq{.code_bytes = 1, .rounds = 1, .train_iterations = 1, .encode_iterations = 1});
  GraphIndex graph_index = GraphIndex::build(context, vectors.slice(0, 60), {.degree = 16},
                                             GraphCalibrationOptions{.target_recall = 0.9, .sample = 20});
  save(graph_index, at("graph_index"));
  graph_index.remove(context, std::vector<Id>{50, 51, 52});
  graph_index.add(context, vectors.slice(60, 5), std::vector<Id>{50, 70, 52, 51, 80});
  save(graph_index, at("graph_index").replace_filename("changed.nw"));
  graph_index.remove(context, graph_index.ids());
  save(graph_index, at("graph_index").replace_filename("empty.nw"));
  save(build_knn_graph(context, vectors.slice(0, 50), {.degree = 3}), at("graph"),
       {{"command", "make_seeds"}});
  const ProductQuantizerOptions options = {.parts = 2, .bits = 4, .iterations = 1};
  save(ProductQuantizer::train(context, vectors, options), at("product_quantizer"));
  save(OptimizedProductQuantizer::train(context, vectors, {.quantizer = options, .rounds = 1}),
       at("optimized_product_quantizer"));
  save(AdditiveQuantizer::train(context, vectors, {.codebooks = 1, .rounds = 1, .iterations = 1}),
       at("additive_quantizer"));
  save(SavedNeighbors{knn(context, vectors.slice(0, 5), vectors, 3), Metric::sqeuclidean, {}},
       at("neighbors"));
  save(SavedPairs{.pairs = threshold_join(context, vectors.slice(0, 50), 2.0F), .threshold = 2.0F},
       at("pairs"));
  save(SavedDeduplication{.deduplication = dedup(context, vectors.slice(0, 50), 2.0F), .threshold = 2.0F},
       at("deduplication"));
  save(SavedNames{.offsets = {0, 1, 1, 3, 6}, .text = "a\xC3\xA9\xE2\x82\xAC"}, at("names"));
}

// The number of a file, as plan_files.cpp has them, then the file; and a manifest.
void make_plan_files(const fs::path& folder) {
  using namespace nearwise;
  const fs::path work = folder / "plans";
  fs::remove_all(work);
  fuzz::run_small_plans(work);
  fs::create_directories(folder / "work_files");
  fs::create_directories(folder / "manifest");
  int number = 0;
  for (const char* const name : fuzz::small_plans()) {
    const Plan plan = fuzz::small_plan(work, name);
    for (const PlannedTask& task : plan.tasks()) {
      const fs::path path = work / name / (task.name + ".nw");
      if (!fs::exists(path)) continue;
      std::ofstream(folder / "work_files" / std::to_string(number), std::ios::binary)
          << static_cast<char>(number) << std::ifstream(path, std::ios::binary).rdbuf();
      ++number;
    }
    fs::copy_file(work / name / "manifest", folder / "manifest" / name, fs::copy_options::overwrite_existing);
  }
  fs::remove_all(work);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: make_seeds FOLDER\n");
    return 2;
  }
  const fs::path folder = arguments[1];
  make_containers(folder / "open_container");
  make_vectors(folder / "open_vectors");
  make_searches(folder / "exact_knn");
  make_objects(folder);
  make_plan_files(folder);
  return 0;
}

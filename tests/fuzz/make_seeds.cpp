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

#include "core/random.h"
#include "io/container/container_writer.h"
#include "nearwise/storage.h"
#include "nearwise/vector_file.h"

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
  return 0;
}

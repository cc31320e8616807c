// From files to a file: vectors are written, mapped again and searched, the result is saved and verified.
#include <nearwise/nearwise.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include <unistd.h>

namespace {

// A folder that goes away with the program.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(std::filesystem::temp_directory_path() / ("nearwise-example-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace

int main() {
  const TemporaryFolder folder;

  // Written in chunks, as if they came from somewhere else; without commit() no file appears.
  nearwise::VectorWriter writer(folder / "base.fbin", nearwise::ElementType::f32, 8);
  nearwise::Matrix<float> chunk(100, 8);
  for (std::size_t part = 0; part < 10; ++part) {
    for (std::size_t row = 0; row < chunk.rows(); ++row)
      for (std::size_t i = 0; i < chunk.cols(); ++i)
        chunk(row, i) = static_cast<float>((part * 100 + row) * (i + 1) % 97);
    writer.append(chunk);
  }
  writer.commit();

  // Mapped, not read: a base may be larger than memory.
  const nearwise::VectorFile base = nearwise::VectorFile::open(folder / "base.fbin");
  const nearwise::Context context = nearwise::Context::cpu();
  nearwise::SavedNeighbors result;
  result.neighbors = nearwise::knn(context, base.rows().slice(0, 50), base.rows(), 10);
  result.provenance["made by"] = "examples/cpp/files.cpp";
  nearwise::save(result, folder / "neighbors.nw");

  const nearwise::ContainerInfo info = nearwise::verify(folder / "neighbors.nw");
  std::printf("%s, %llu bytes, %zu sections, every checksum right\n", info.kind.c_str(),
              static_cast<unsigned long long>(info.bytes), info.sections.size());
  const nearwise::SavedNeighbors loaded = nearwise::load_neighbors(folder / "neighbors.nw");
  for (std::size_t query = 0; query < 50; ++query)
    for (std::size_t rank = 0; rank < 10; ++rank)
      if (loaded.neighbors.ids(query, rank) != result.neighbors.ids(query, rank)) return 1;
  return 0;
}

// A BLAS to compare with, loaded by name at run time, with the number of threads and the tile shape that suit
// it best.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/timing.h"
#include "nearwise/matrix.h"

namespace nearwise::bench {

struct Tile {
  std::size_t queries = 0;
  std::size_t rows = 0;
};

class Blas {
 public:
  // `path` is any shared library with cblas_sgemm: libmkl_rt.so, libopenblas.so.
  Blas(const std::string& path, int threads)
      : library_(dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)), name_(path.substr(path.rfind('/') + 1)) {
    if (library_ == nullptr) throw std::runtime_error(dlerror());
    sgemm_ = function<Sgemm>("cblas_sgemm");
    if (sgemm_ == nullptr) throw std::runtime_error(path + " has no cblas_sgemm");
    if (const auto set = function<void (*)(int)>("openblas_set_num_threads")) set(threads);
    if (const auto core = function<char* (*)()>("openblas_get_corename"))
      name_ += fmt::format(" (core type {})", core());
    if (const auto config = function<char* (*)()>("openblas_get_config")) version_ = config();
    if (const auto set = function<void (*)(int)>("MKL_Set_Num_Threads")) set(threads);
    if (const auto version = function<void (*)(char*, int)>("MKL_Get_Version_String")) {
      char text[200] = {};
      version(text, sizeof(text) - 1);
      version_ = text;
      version_.erase(version_.find_last_not_of(' ') + 1);
    }
  }

  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }

  // All products of queries and base, tile by tile, each overwriting the previous one; nothing is selected.
  // No exact search by matrix products can be faster.
  void products(const MatrixView<const float>& queries, const MatrixView<const float>& base, Tile tile) {
    out_.resize(std::max(out_.size(), tile.queries * tile.rows));
    const auto dim = static_cast<int>(base.cols());
    for (std::size_t b = 0; b < base.rows(); b += tile.rows) {
      const auto rows = static_cast<int>(std::min(tile.rows, base.rows() - b));
      for (std::size_t q = 0; q < queries.rows(); q += tile.queries) {
        const auto count = static_cast<int>(std::min(tile.queries, queries.rows() - q));
        sgemm_(row_major, no_transpose, transpose, count, rows, dim, 1, queries.row(q).data(), dim,
               base.row(b).data(), dim, 0, out_.data(), rows);
      }
    }
  }

  // The fastest of several tile shapes on a slice of the work.
  Tile best_tile(const MatrixView<const float>& queries, const MatrixView<const float>& base) {
    const Tile tiles[] = {{256, 1024}, {512, 4096}, {1024, 1024}, {1024, 8192}, {2048, 2048}, {4096, 1024}};
    const auto slice = base.slice(0, std::min<std::size_t>(base.rows(), 65536));
    Tile best;
    double least = 1e300;
    for (int round = 0; round < 2; ++round)
      for (const Tile tile : tiles) {
        const double time = seconds([&] { products(queries, slice, tile); });
        if (time < least) {
          least = time;
          best = tile;
        }
      }
    return best;
  }

 private:
  static constexpr int row_major = 101;
  static constexpr int no_transpose = 111;
  static constexpr int transpose = 112;
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                         float*, int);

  template <typename Function>
  Function function(const char* symbol) const {
    return reinterpret_cast<Function>(dlsym(library_, symbol));
  }

  void* library_;  // never closed: its threads live as long as the program
  Sgemm sgemm_ = nullptr;
  std::string name_;
  std::string version_ = "unknown";
  std::vector<float> out_;
};

}  // namespace nearwise::bench

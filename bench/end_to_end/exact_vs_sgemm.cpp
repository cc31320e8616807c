// Exact search against the bare sgemm calls of the same shape, in one run, interleaved.
//
//   exact_vs_sgemm [--rows N] [--dim D] [--queries Q] [--k K] [--threads T] [--repeat R] [--metric M]
//                  [--base FILE --query-file FILE] [--blas LIBRARY]
//
// The product is what everybody's exact search is bounded by: all tiles of queries x base, written to a buffer that is
// overwritten by the next tile, nothing selected. LIBRARY is any shared library with cblas_sgemm (libmkl_rt.so,
// libopenblas.so); it gets the same threads and the best of several tile shapes. Output: one JSON object.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/convert.h"
#include "core/random.h"
#include "nearwise/nearwise.h"

namespace {

using nearwise::Matrix;
using nearwise::RowsView;

constexpr int row_major = 101;
constexpr int no_transpose = 111;
constexpr int transpose = 112;
using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                       float*, int);

double seconds(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Blas {
  Sgemm sgemm = nullptr;
  std::string name;
};

Blas load_blas(const std::string& path, int threads) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  Blas blas;
  blas.sgemm = reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
  if (blas.sgemm == nullptr) throw std::runtime_error(path + " has no cblas_sgemm");
  blas.name = path.substr(path.rfind('/') + 1);
  if (auto* set = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"))) {
    set(threads);
    if (auto* core = reinterpret_cast<char* (*)()>(dlsym(library, "openblas_get_corename")))
      blas.name += fmt::format(" (core type {})", core());
  }
  if (auto* set = reinterpret_cast<void (*)(int)>(dlsym(library, "MKL_Set_Num_Threads"))) set(threads);
  if (auto* version = reinterpret_cast<void (*)(char*, int)>(dlsym(library, "MKL_Get_Version_String"))) {
    char text[200] = {};
    version(text, sizeof(text) - 1);
    blas.name += fmt::format(" ({})", text);
  }
  return blas;
}

Matrix<float> to_float(const RowsView& rows, std::size_t limit) {
  Matrix<float> out(std::min(rows.rows(), limit), rows.dim());
  nearwise::visit_element_type(rows.type(), [&](auto tag) {
    for (std::size_t r = 0; r < out.rows(); ++r)
      for (std::size_t i = 0; i < rows.dim(); ++i)
        out(r, i) = nearwise::element<decltype(tag)>(rows.row(r), i);
  });
  return out;
}

Matrix<float> random_rows(std::size_t rows, std::size_t dim, std::uint64_t seed) {
  Matrix<float> out(rows, dim);
  const nearwise::Random random(seed);
  for (std::size_t i = 0; i < rows * dim; ++i) out.data()[i] = static_cast<float>(random.uniform(i));
  return out;
}

struct Tile {
  std::size_t queries;
  std::size_t rows;
};

// All products of the first `row_limit` base rows with the queries, tile by tile.
void bare_sgemm(const Blas& blas, const Matrix<float>& queries, const Matrix<float>& base,
                std::size_t row_limit, Tile tile, std::vector<float>& out) {
  const auto dim = static_cast<int>(base.cols());
  for (std::size_t b = 0; b < row_limit; b += tile.rows) {
    const auto rows = static_cast<int>(std::min(tile.rows, row_limit - b));
    for (std::size_t q = 0; q < queries.rows(); q += tile.queries) {
      const auto count = static_cast<int>(std::min(tile.queries, queries.rows() - q));
      blas.sgemm(row_major, no_transpose, transpose, count, rows, dim, 1, queries.row(q).data(), dim,
                 base.row(b).data(), dim, 0, out.data(), rows);
    }
  }
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int run(const std::map<std::string, std::string>& options) {
  const auto number = [&](const char* name, std::size_t fallback) {
    const auto found = options.find(name);
    return found == options.end() ? fallback : static_cast<std::size_t>(std::stoull(found->second));
  };
  const auto text = [&](const char* name, const char* fallback) {
    const auto found = options.find(name);
    return found == options.end() ? std::string(fallback) : found->second;
  };
  const std::size_t k = number("k", 10);
  const auto threads = static_cast<int>(number("threads", 2));
  const std::size_t repeat = number("repeat", 5);
  const nearwise::KnnOptions knn_options = {.metric = nearwise::parse_metric(text("metric", "sqeuclidean"))};
  Matrix<float> base;
  Matrix<float> queries;
  if (options.contains("base")) {
    base = to_float(nearwise::VectorFile::open(text("base", "")).rows(), number("rows", SIZE_MAX));
    queries =
        to_float(nearwise::VectorFile::open(text("query-file", "")).rows(), number("queries", SIZE_MAX));
  } else {
    base = random_rows(number("rows", 1'000'000), number("dim", 128), 1);
    queries = random_rows(number("queries", 10'000), number("dim", 128), 2);
  }
  const Blas blas = load_blas(text("blas", "libopenblas.so.0"), threads);
  const auto context = nearwise::Context::cpu({.threads = threads});

  // The rival's best tile, on a slice of the work.
  const Tile tiles[] = {{256, 1024}, {512, 4096}, {1024, 1024}, {1024, 8192}, {2048, 2048}, {4096, 1024}};
  Tile best_tile = tiles[0];
  double best_time = 1e300;
  const std::size_t slice = std::min<std::size_t>(base.rows(), 65536);
  std::vector<float> out;
  for (int round = 0; round < 2; ++round) {
    for (const Tile tile : tiles) {
      out.resize(std::max(out.size(), tile.queries * tile.rows));
      const double time = seconds([&] { bare_sgemm(blas, queries, base, slice, tile, out); });
      if (time < best_time) {
        best_time = time;
        best_tile = tile;
      }
    }
  }

  std::vector<double> own, bare, bare_again, ratios, noise;
  nearwise::Neighbors result = knn(context, queries, base.view().slice(0, slice), k, knn_options);  // warm up
  for (std::size_t i = 0; i < repeat; ++i) {
    bare.push_back(seconds([&] { bare_sgemm(blas, queries, base, base.rows(), best_tile, out); }));
    own.push_back(seconds([&] { result = knn(context, queries, base, k, knn_options); }));
    bare_again.push_back(seconds([&] { bare_sgemm(blas, queries, base, base.rows(), best_tile, out); }));
    ratios.push_back(own.back() / ((bare.back() + bare_again.back()) / 2));
    noise.push_back(bare_again.back() / bare.back());
  }
  const double flops = 2.0 * static_cast<double>(base.rows()) * static_cast<double>(queries.rows()) *
                       static_cast<double>(base.cols());
  nlohmann::json report = {{"rows", base.rows()},
                           {"dim", base.cols()},
                           {"queries", queries.rows()},
                           {"k", k},
                           {"metric", nearwise::name(knn_options.metric)},
                           {"threads", threads},
                           {"isa", context.isa()},
                           {"blas", blas.name},
                           {"tile", {best_tile.queries, best_tile.rows}},
                           {"own_seconds", own},
                           {"sgemm_seconds", bare},
                           {"sgemm_again_seconds", bare_again},
                           {"ratios", ratios},
                           {"ratio", median(ratios)},
                           {"sgemm_against_itself", noise},
                           {"sgemm_gflops", flops / median(bare) * 1e-9},
                           {"own_gflops", flops / median(own) * 1e-9}};
  fmt::print("{}\n", report.dump());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options;
  for (int i = 1; i + 1 < argc; i += 2) options[std::string(argv[i]).substr(2)] = argv[i + 1];
  try {
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "exact_vs_sgemm: {}\n", error.what());
    return 1;
  }
}

// Prints what operations ask of CUDA, counted on the emulated device: a line of JSON for each, about its
// second call in the same context.
//
//   cuda_call_counts                                   every operation of docs/guide/gpu.md
//   cuda_call_counts exact ROWS DIM QUERIES THREADS    Exact.search alone, of a base of this shape
//   cuda_call_counts additive ROWS DIM QUERIES K       AdditiveQuantizer.search alone, of 3 codebooks
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_emulation/call_counts.h"
#include "nearwise/nearwise.h"

namespace {

using namespace nearwise;

// Sums of uniform numbers by xorshift: scores certify the searches, as they do on real data.
Matrix<float> make_rows(std::size_t rows, std::size_t dim, std::uint32_t seed) {
  Matrix<float> made(rows, dim);
  std::uint32_t state = seed;
  const auto uniform = [&] {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return static_cast<float>(state >> 8) * 0x1p-24F;
  };
  for (std::size_t i = 0; i < rows * dim; ++i) made.data()[i] = uniform() + uniform() - uniform() - uniform();
  return made;
}

RowsView view(const Matrix<float>& rows) { return MatrixView<const float>(rows.view()); }

// Counts the second run: the first opens what later ones find.
void print_counts(std::string_view operation, std::string_view shape, const std::function<void()>& run) {
  run();
  cuda_emulation::reset_call_counts();
  run();
  const cuda_emulation::CallCounts counts = cuda_emulation::call_counts();
  std::string calls;
  for (const auto& [name, times] : counts.calls)
    fmt::format_to(std::back_inserter(calls), R"({}"{}": {})", calls.empty() ? "" : ", ", name, times);
  fmt::print(
      R"({{"operation": "{}", "shape": "{}", "launches": {}, "synchronisations": {}, )"
      R"("pageable_to_device": {}, "pinned_to_device": {}, "device_to_pageable": {}, "device_to_pinned": {}, )"
      R"("allocations": {}, "pinned_allocations": {}, "pool_growths": {}, "streams": {}, "handles": {}, )"
      R"("calls": {{{}}}}})"
      "\n",
      operation, shape, counts.launches(), counts.synchronisations, counts.pageable_to_device,
      counts.pinned_to_device, counts.device_to_pageable, counts.device_to_pinned,
      counts.device_allocations(), counts.pinned_allocations(), counts.pool_growths,
      counts.stream_creations(), counts.handle_creations(), calls);
}

void exact_search(std::size_t rows, std::size_t dim, std::size_t queries, int threads) {
  const Context context = Context::cuda(0, {.threads = threads});
  const Matrix<float> base = make_rows(rows, dim, 1);
  const Matrix<float> searched = make_rows(queries, dim, 2);
  const Exact index = Exact::prepare(context, view(base));
  print_counts("Exact.search", fmt::format("{} of {} x {}", queries, rows, dim),
               [&] { index.search(context, view(searched), 10); });
}

// Codes and codewords are arbitrary: counts do not depend on them.
void additive_search(std::size_t rows, std::size_t dim, std::size_t queries, std::size_t k) {
  constexpr std::size_t codebooks = 3;
  const Context context = Context::cuda(0, {.threads = 2});
  const Matrix<float> codewords = make_rows(codebooks * AdditiveQuantizer::centroids, dim, 3);
  const std::vector<float> norms(AdditiveQuantizer::centroids, static_cast<float>(dim));
  const AdditiveQuantizer quantizer =
      AdditiveQuantizer::from_codebooks(dim, {codewords.data(), codewords.rows() * dim}, norms);
  const Matrix<float> numbers = make_rows(rows, quantizer.code_bytes(), 1);
  Matrix<std::uint8_t> codes(rows, quantizer.code_bytes());
  for (std::size_t i = 0; i < rows * codes.cols(); ++i)
    codes.data()[i] = static_cast<std::uint8_t>(numbers.data()[i] * 64 + 128);
  const Matrix<float> searched = make_rows(queries, dim, 2);
  print_counts("AdditiveQuantizer.search",
               fmt::format("{} of {} x {}, codes of {} bytes", queries, rows, dim, codes.cols()),
               [&] { quantizer.search(context, view(searched), codes, k); });
}

void every_operation() {
  constexpr std::size_t rows = 2048, dim = 32, queries = 8;
  const Context context = Context::cuda(0, {.threads = 2});
  const Matrix<float> base = make_rows(rows, dim, 1);
  const Matrix<float> searched = make_rows(queries, dim, 2);
  const std::string search = fmt::format("{} of {} x {}", queries, rows, dim);
  const std::string all = fmt::format("{} x {}", rows, dim);

  print_counts("knn", search, [&] { knn(context, view(searched), view(base), 10); });
  print_counts("Exact.prepare", all, [&] { Exact::prepare(context, view(base)); });
  exact_search(rows, dim, 1, 2);
  exact_search(rows, dim, queries, 2);
  print_counts("exact_knn_graph", fmt::format("512 x {}", dim),
               [&] { exact_knn_graph(context, view(base).slice(0, 512), 10); });
  print_counts("select_k", fmt::format("{} x {}", dim, rows),
               [&] { select_k(context, MatrixView<const float>(base.data(), dim, rows), 10); });
  print_counts("train_kmeans", fmt::format("{}, 16 clusters, 5 iterations", all),
               [&] { train_kmeans(context, view(base), 16, {.iterations = 5}); });

  const Context cpu = Context::cpu({.threads = 2});
  const ProductQuantizer product = ProductQuantizer::train(cpu, view(base), {.parts = 4, .bits = 4});
  print_counts("ProductQuantizer.encode", all, [&] { product.encode(context, view(base)); });
  additive_search(rows, dim, queries, 10);
  Ivf flat = Ivf::build(cpu, view(base), {.lists = 16, .encoding = Flat{}}, std::nullopt);
  print_counts("Ivf.search, Flat", search + ", 4 of 16 lists",
               [&] { flat.search(context, view(searched), 10, {.probes = 4}); });
  Ivf codes = Ivf::build(cpu, view(base), {.lists = 16, .encoding = Pq{.code_bytes = 4}}, std::nullopt);
  print_counts("Ivf.search, Pq", search + ", 4 of 16 lists",
               [&] { codes.search(context, view(searched), 10, {.probes = 4, .candidates = 40}); });
  flat.to(context);
  print_counts("Ivf.search, Flat, after Ivf.to", search + ", 4 of 16 lists",
               [&] { flat.search(context, view(searched), 10, {.probes = 4}); });
  codes.to(context);
  print_counts("Ivf.search, Pq, after Ivf.to", search + ", 4 of 16 lists",
               [&] { codes.search(context, view(searched), 10, {.probes = 4, .candidates = 40}); });
  print_counts("build_knn_graph", fmt::format("1024 x {}, degree 8", dim),
               [&] { build_knn_graph(context, view(base).slice(0, 1024), {.degree = 8}); });
  const GraphIndex graph = GraphIndex::build(cpu, view(base), {.degree = 16}, std::nullopt);
  print_counts("GraphIndex.search", search + ", beam 32",
               [&] { graph.search(context, view(searched), 10, {.beam = 32}); });
}

}  // namespace

int main(int count, char** arguments) {
  const std::span<char*> given(arguments, static_cast<std::size_t>(count));
  const auto number = [&](std::size_t i) { return std::strtoull(given[i], nullptr, 10); };
  if (given.size() == 1) {
    every_operation();
  } else if (given.size() == 6 && std::string_view(given[1]) == "exact") {
    exact_search(number(2), number(3), number(4), static_cast<int>(number(5)));
  } else if (given.size() == 6 && std::string_view(given[1]) == "additive") {
    additive_search(number(2), number(3), number(4), number(5));
  } else {
    fmt::print(stderr,
               "usage: cuda_call_counts [exact ROWS DIM QUERIES THREADS | additive ROWS DIM QUERIES K]\n");
    return 2;
  }
  return 0;
}

// Exact search: bytes against floats, another metric, a memory limit that is kept, and what a mistake looks
// like.
#include <nearwise/nearwise.h>

#include <cstdint>
#include <cstdio>

namespace {

// A few thousand vectors that anyone can make again.
nearwise::Matrix<std::uint8_t> make_base(std::size_t rows, std::size_t dim) {
  nearwise::Matrix<std::uint8_t> base(rows, dim);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < rows * dim; ++i) {
    state = state * 1664525U + 1013904223U;
    base.data()[i] = static_cast<std::uint8_t>(state >> 24);
  }
  return base;
}

}  // namespace

int main() {
  const nearwise::Matrix<std::uint8_t> base = make_base(5000, 32);
  // Queries may have another element type than the base: here the first rows, as floats.
  nearwise::Matrix<float> queries(3, 32);
  for (std::size_t row = 0; row < queries.rows(); ++row)
    for (std::size_t i = 0; i < queries.cols(); ++i) queries(row, i) = base(row, i);

  const nearwise::Context context =
      nearwise::Context::cpu({.threads = 2, .memory_limit = std::uint64_t{64} << 20});
  const nearwise::Neighbors found =
      nearwise::knn(context, queries, base, 5, {.metric = nearwise::Metric::cosine});
  for (std::size_t query = 0; query < queries.rows(); ++query) {
    std::printf("query %zu:", query);
    for (std::size_t rank = 0; rank < 5; ++rank)
      std::printf(" %lld (%.4f)", static_cast<long long>(found.ids(query, rank)),
                  static_cast<double>(found.distances(query, rank)));
    std::printf("\n");
  }
  std::printf("working memory at most %llu bytes, on %s\n",
              static_cast<unsigned long long>(context.memory_peak()), context.isa().c_str());

  // Mistakes are exceptions of one type; the message names operation, expected and given.
  try {
    nearwise::knn(context, queries, base, 5001);
    return 1;
  } catch (const nearwise::Error& error) {
    std::printf("refused: %s\n", error.what());
  }
  // A vector is at cosine distance exactly 0 from itself.
  for (std::size_t query = 0; query < queries.rows(); ++query)
    if (found.ids(query, 0) != static_cast<nearwise::Id>(query) || found.distances(query, 0) != 0) return 1;
  return 0;
}

// A base prepared once for many searches: the nearest rows, all rows within a radius; and the graph of the
// same rows.
#include <nearwise/nearwise.h>

#include <cstdint>
#include <cstdio>

namespace {

// Vectors that anyone can make again.
nearwise::Matrix<float> make_base(std::size_t rows, std::size_t dim) {
  nearwise::Matrix<float> base(rows, dim);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < rows * dim; ++i) {
    state = state * 1664525U + 1013904223U;
    base.data()[i] = static_cast<float>(state >> 24) / 256;
  }
  return base;
}

}  // namespace

int main() {
  const nearwise::Matrix<float> base = make_base(5000, 32);
  const nearwise::Context context = nearwise::Context::cpu();

  // The rows are looked at in every search: they outlive what is prepared from them.
  const nearwise::Exact prepared =
      nearwise::Exact::prepare(context, base, {.metric = nearwise::Metric::euclidean});
  for (std::size_t query = 0; query < 3; ++query) {
    const nearwise::Neighbors found = prepared.search(context, base.view().slice(query, 1), 3);
    std::printf("query %zu: nearest %lld, then %lld at %.4f\n", query,
                static_cast<long long>(found.ids(0, 0)), static_cast<long long>(found.ids(0, 1)),
                static_cast<double>(found.distances(0, 1)));
    if (found.ids(0, 0) != static_cast<nearwise::Id>(query)) return 1;
  }

  // Answers of different lengths lie behind each other.
  const nearwise::RangeNeighbors near = prepared.range_search(context, base.view().slice(0, 3), 1.7F);
  for (std::size_t query = 0; query < 3; ++query) {
    std::printf("query %zu: %zu rows within 1.7\n", query, near.offsets[query + 1] - near.offsets[query]);
    if (near.ids[near.offsets[query]] != static_cast<nearwise::Id>(query)) return 1;
  }

  // Every row's nearest other rows.
  const nearwise::Neighbors graph =
      nearwise::exact_knn_graph(context, base, 5, {.metric = nearwise::Metric::euclidean});
  std::printf("row 0: nearest other row %lld\n", static_cast<long long>(graph.ids(0, 0)));
  return graph.ids(0, 0) == prepared.search(context, base.view().slice(0, 1), 2).ids(0, 1) ? 0 : 1;
}

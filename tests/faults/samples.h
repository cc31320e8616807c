// Small objects of every kind, made once.
#pragma once

#include <numeric>
#include <vector>

#include "nearwise/nearwise.h"
#include "support/knn_cases.h"

namespace nearwise::faults {

inline constexpr std::size_t count = 600;
inline constexpr std::size_t dim = 8;

inline const support::Rows& vectors() {
  static const support::Rows made(support::generate(support::Kind::normal, count, dim, 4), ElementType::f32);
  return made;
}
inline RowsView some() { return vectors().view().slice(10, 20); }

// For making objects; those under test have contexts of their own.
inline const Context& maker() {
  static const Context context = Context::cpu({.threads = 2, .seed = 3});
  return context;
}

inline const KnnGraph& graph() {
  static const KnnGraph made = build_knn_graph(maker(), vectors(), {.degree = 4});
  return made;
}
inline const ProductQuantizer& product() {
  static const ProductQuantizer made =
      ProductQuantizer::train(maker(), vectors(), {.parts = 4, .bits = 4, .iterations = 2});
  return made;
}
inline const OptimizedProductQuantizer& optimized() {
  static const OptimizedProductQuantizer made = OptimizedProductQuantizer::train(
      maker(), vectors(), {.quantizer = {.parts = 4, .bits = 4, .iterations = 2}, .rounds = 1});
  return made;
}
inline const AdditiveQuantizer& additive() {
  static const AdditiveQuantizer made =
      AdditiveQuantizer::train(maker(), vectors(), {.codebooks = 2, .rounds = 1, .iterations = 1});
  return made;
}

inline Encoding flat() { return Flat{}; }
inline Encoding pq() { return Pq{.code_bytes = 4, .bits = 4}; }
inline Encoding lsq() {
  return Lsq{.code_bytes = 2, .rounds = 1, .train_iterations = 1, .encode_iterations = 1};
}

inline Ivf make_index(const Encoding& encoding, const RowsView& rows = vectors(), Id first_id = 0) {
  Ivf index = Ivf::train(maker(), vectors(), {.lists = 6, .encoding = encoding});
  std::vector<Id> ids(rows.rows());
  std::iota(ids.begin(), ids.end(), first_id);
  index.add(maker(), rows, ids);
  return index;
}

inline oracle::Answer answers_of(const Ivf& index) {
  return support::as_expected(index.search(maker(), some(), 4, {.probes = 6}));
}

inline void write_vectors(const std::filesystem::path& path, const RowsView& rows = vectors()) {
  VectorWriter writer(path, rows.type(), rows.dim());
  writer.append(rows);
  writer.commit();
}

}  // namespace nearwise::faults

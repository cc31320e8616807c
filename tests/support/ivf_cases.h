// The answers of an inverted file by its definition, whatever its codes are.
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "nearwise/ivf.h"
#include "oracle/lists.h"
#include "support/knn_cases.h"

namespace nearwise::support {

inline Problem clustered(std::size_t rows, std::size_t queries, std::size_t dim, std::uint64_t seed,
                         ElementType type = ElementType::f32) {
  return make_problem({.kind = Kind::exact_duplicates,
                       .rows = rows,
                       .queries = queries,
                       .dim = dim,
                       .base_type = type,
                       .query_type = type,
                       .base_layout = Layout::dense,
                       .query_layout = Layout::padded,
                       .seed = seed});
}

inline const Context& one_thread() {
  static const Context context = Context::cpu({.threads = 1, .seed = 5});
  return context;
}

// The reconstruction of a vector with residual `left`, [1, dim].
using DecodeLeft = std::function<std::vector<double>(std::size_t list, const Matrix<float>& left)>;

// Lists by the oracle's nearest centroid; without `decode` rows as they are.
inline std::vector<oracle::DecodedList> lists_of(const Ivf& index, RowsView rows, const DecodeLeft& decode) {
  const oracle::Answer nearest = oracle::knn(rows, index.centroids(), 1, index.metric());
  const std::vector<double> values = oracle::to_doubles(rows);
  std::vector<oracle::DecodedList> lists(index.lists());
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    const auto list = static_cast<std::size_t>(nearest.ids[row]);
    std::vector<double> decoded(values.begin() + static_cast<std::ptrdiff_t>(row * rows.dim()),
                                values.begin() + static_cast<std::ptrdiff_t>((row + 1) * rows.dim()));
    if (decode) {
      if (index.metric() == Metric::cosine) {
        double squares = 0;
        for (const double value : decoded) squares += value * value;
        for (double& value : decoded) value = squares > 0 ? value / std::sqrt(squares) : 0;
      }
      Matrix<float> left(1, rows.dim());
      for (std::size_t i = 0; i < rows.dim(); ++i)
        left(0, i) = static_cast<float>(decoded[i] - static_cast<double>(index.centroids()(list, i)));
      decoded = decode(list, left);
    }
    lists[list].ids.push_back(static_cast<Id>(row));
    lists[list].rows.insert(lists[list].rows.end(), decoded.begin(), decoded.end());
  }
  return lists;
}

inline oracle::Answer expected_answer(const Ivf& index, const DecodeLeft& decode, RowsView base,
                                      RowsView queries, std::size_t k, std::size_t probes,
                                      std::size_t candidates) {
  const std::vector<oracle::DecodedList> lists = lists_of(index, base, decode);
  const oracle::Answer nearest = oracle::knn(queries, index.centroids(), probes, index.metric());
  const std::vector<double> values = oracle::to_doubles(queries);
  const std::vector<double> rows = candidates != 0 ? oracle::to_doubles(base) : std::vector<double>();
  oracle::Answer answer{queries.rows(), k, {}, {}};
  for (std::size_t query = 0; query < queries.rows(); ++query)
    for (const oracle::Candidate& found :
         oracle::search_lists(std::span(values).subspan(query * queries.dim(), queries.dim()), lists,
                              std::span(nearest.ids).subspan(query * probes, probes), k,
                              candidates != 0 ? candidates : k, rows, index.metric())) {
      answer.ids.push_back(found.id);
      answer.distances.push_back(found.value);
    }
  return answer;
}

}  // namespace nearwise::support

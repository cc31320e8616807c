// Means of clusters by a backend's centroid_means, of rows that are assigned at random.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/dispatch.h"
#include "support/problems.h"
#include "support/rows.h"

namespace nearwise::support {

// Everything that centroid_means writes.
struct Means {
  std::vector<float> means;
  std::vector<double> sums;
  std::vector<std::uint32_t> members;
  std::vector<std::uint64_t> ends;
  std::vector<double> errors;

  bool operator==(const Means&) const = default;
};

struct MeansCase {
  std::size_t rows = 0;
  std::size_t dim = 0;
  std::size_t clusters = 0;
  ElementType type = ElementType::f32;
  Layout layout = Layout::dense;
  Kind kind = Kind::normal;
  Metric metric = Metric::sqeuclidean;
  std::uint64_t seed = 0;
};

inline std::string describe(const MeansCase& made) {
  return fmt::format("{} rows of {} in {} clusters, {} {} {} {}, seed {}", made.rows, made.dim, made.clusters,
                     name(made.type), name(made.layout), name(made.kind), name(made.metric), made.seed);
}

// Half of the clusters get most of the rows: some stay empty.
inline std::vector<std::uint32_t> uneven_assignment(const MeansCase& made) {
  const Random random = random_for(made.seed, Purpose::rows);
  std::vector<std::uint32_t> nearest(made.rows);
  for (std::size_t row = 0; row < made.rows; ++row) {
    const bool any = random.below(2 * row, 8) == 0;
    nearest[row] =
        static_cast<std::uint32_t>(random.below(2 * row + 1, any ? made.clusters : (made.clusters + 1) / 2));
  }
  return nearest;
}

inline Means means_of(const Context& context, const MeansCase& made) {
  const Rows data(generate(made.kind, made.rows, made.dim, made.seed), made.type, made.layout);
  const Rows points(generate(Kind::normal, made.clusters, made.dim, made.seed + 1), ElementType::f32);
  const std::vector<std::uint32_t> nearest = uneven_assignment(made);
  Means found = {std::vector<float>(made.clusters * made.dim, -7),
                 std::vector<double>(made.clusters * made.dim, -7), std::vector<std::uint32_t>(made.rows),
                 std::vector<std::uint64_t>(made.clusters), std::vector<double>(made.clusters, -7)};
  const auto stream = open_stream(context);
  dispatch(&Ops::centroid_means, "centroid_means", *stream,
           CentroidMeansArgs{
               .rows = data,
               .nearest = nearest,
               .centroids = {reinterpret_cast<const float*>(points.view().data()), made.clusters, made.dim},
               .metric = made.metric,
               .means = {found.means.data(), made.clusters, made.dim},
               .sums = {found.sums.data(), made.clusters, made.dim},
               .members = found.members,
               .ends = found.ends,
               .errors = found.errors});
  return found;
}

}  // namespace nearwise::support

#include "graph_index/entry_tree.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "backend/stages.h"
#include "core/checked.h"
#include "graph_index/edges/code_distance.h"
#include "nearwise/exact.h"
#include "nearwise/kmeans.h"
#include "ops/gather_rows.h"

namespace nearwise::graph_index {
namespace {

constexpr std::size_t training_rows_per_leaf = 40;
constexpr std::size_t iterations = 8;
// Two levels of k-means are faster from here on.
constexpr std::size_t min_hierarchical = 256;

// Centroids rounded to codes, padded.
Matrix<std::uint8_t> rounded(const Matrix<float>& centroids, std::size_t row_bytes) {
  Matrix<std::uint8_t> codes(centroids.rows(), row_bytes);
  std::fill_n(codes.data(), codes.rows() * row_bytes, std::uint8_t{0});
  for (std::size_t row = 0; row < codes.rows(); ++row)
    for (std::size_t i = 0; i < centroids.cols(); ++i)
      codes(row, i) = static_cast<std::uint8_t>(std::clamp(std::nearbyint(centroids(row, i)), 0.0F, 255.0F));
  return codes;
}

RowsView rows_of(MatrixView<const std::uint8_t> codes, std::size_t code_dim) {
  return {codes.data(), ElementType::u8, codes.rows(), code_dim, codes.cols()};
}

Matrix<std::uint8_t> gather(MatrixView<const std::uint8_t> codes, const std::vector<std::uint32_t>& rows) {
  Matrix<std::uint8_t> gathered(rows.size(), codes.cols());
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::memcpy(gathered.row(i).data(), codes.row(rows[i]).data(), codes.cols());
  return gathered;
}

}  // namespace

std::size_t EntryTree::leaf_count(std::size_t rows) {
  return std::clamp<std::size_t>(rows / rows_per_leaf, 1, max_leaves);
}

std::size_t EntryTree::training_rows(std::size_t rows) {
  return std::min(rows, leaf_count(rows) * training_rows_per_leaf);
}

EntryTree EntryTree::train(const Context& context, MatrixView<const std::uint8_t> codes,
                           std::size_t code_dim) {
  const RowsView rows = rows_of(codes, code_dim);
  const std::size_t leaves = leaf_count(codes.rows());
  const std::size_t sample = training_rows(codes.rows());
  const GatheredRows training(context, rows, sample, [&](std::size_t i) {
    return PlacedRow{i * codes.rows() / sample, i};
  });
  Stages stages(context, "entry_tree");
  const KMeansOptions options = {.iterations = iterations};
  const Context first = stages.next(1, 1);
  const KMeans found = leaves < min_hierarchical
                           ? train_kmeans(first, training.view(), leaves, options)
                           : train_hierarchical_kmeans(first, training.view(), leaves, options);
  const Matrix<std::uint8_t> centres = rounded(found.centroids, codes.cols());
  const Neighbors nearest = knn(stages.next(1, 0), rows_of(centres, code_dim), rows, 1);
  std::vector<std::uint32_t> entries;
  for (std::size_t leaf = 0; leaf < leaves; ++leaf)
    entries.push_back(static_cast<std::uint32_t>(nearest.ids(leaf, 0)));
  std::ranges::sort(entries);
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());

  const Matrix<std::uint8_t> leaf_codes = gather(codes, entries);
  const auto tops =
      std::max<std::size_t>(1, static_cast<std::size_t>(std::sqrt(static_cast<double>(entries.size()))));
  const KMeans groups =
      train_kmeans(context.without_progress(), rows_of(leaf_codes, code_dim), tops, options);
  EntryTree tree;
  tree.top_codes_ = rounded(groups.centroids, codes.cols());
  tree.ends_.assign(tops, 0);
  tree.add(codes, entries);
  stages.finish();
  return tree;
}

EntryTree::EntryTree(MatrixView<const std::uint8_t> codes, Matrix<std::uint8_t> top_codes,
                     std::vector<std::uint32_t> ends, std::vector<std::uint32_t> rows)
    : top_codes_(std::move(top_codes)),
      ends_(std::move(ends)),
      rows_(std::move(rows)),
      leaf_codes_(gather(codes, rows_)) {}

void EntryTree::add(MatrixView<const std::uint8_t> codes, const std::vector<std::uint32_t>& rows) {
  std::vector<std::vector<std::uint32_t>> groups(ends_.size());
  for (std::size_t top = 0; top < ends_.size(); ++top)
    groups[top].assign(rows_.begin() + (top == 0 ? 0 : ends_[top - 1]), rows_.begin() + ends_[top]);
  for (const std::uint32_t row : rows) {
    std::size_t best = 0;
    std::uint64_t best_distance = UINT64_MAX;
    for (std::size_t top = 0; top < ends_.size(); ++top) {
      const std::uint64_t distance = code_distance(codes.row(row), top_codes_.row(top));
      if (distance < best_distance) {
        best_distance = distance;
        best = top;
      }
    }
    groups[best].push_back(row);
  }
  rows_.clear();
  for (std::size_t top = 0; top < ends_.size(); ++top) {
    std::ranges::sort(groups[top]);
    rows_.insert(rows_.end(), groups[top].begin(), groups[top].end());
    ends_[top] = static_cast<std::uint32_t>(rows_.size());
  }
  leaf_codes_ = gather(codes, rows_);
}

EntryTree EntryTree::with_leaves(MatrixView<const std::uint8_t> codes,
                                 const std::vector<std::uint32_t>& rows) const {
  EntryTree tree;
  tree.top_codes_ = Matrix<std::uint8_t>(top_codes_.rows(), top_codes_.cols());
  std::copy_n(top_codes_.data(), top_codes_.rows() * top_codes_.cols(), tree.top_codes_.data());
  tree.ends_ = ends_;
  tree.rows_ = rows_;
  tree.add(codes, rows);
  return tree;
}

}  // namespace nearwise::graph_index

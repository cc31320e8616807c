// The nearest centroid of every row by exact search, in tiles that fit the memory limit. If memory allows,
// rows are packed once for all calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/dispatch.h"
#include "core/progress.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::cluster {

// Expected duration of one call of nearest(), for shares of progress: distances computed, times their
// elements. A distance takes as long as this many elements besides.
inline double assignment_cost(const RowsView& rows, std::size_t centroids) {
  constexpr double elements_per_distance = 128;
  return static_cast<double>(rows.rows()) * static_cast<double>(centroids) *
         (static_cast<double>(rows.dim()) + elements_per_distance);
}

struct CentroidSearchArgs {
  RowsView rows;
  std::size_t max_centroids = 0;  // per call of nearest()
  ElementType centroid_type = ElementType::f32;
  Metric metric = Metric::sqeuclidean;
  bool distances = false;  // nearest() is called with distances
  bool once = false;       // nearest() is called once: packed rows are not kept
};

class CentroidSearch {
 public:
  // Minimum budget in bytes.
  static std::uint64_t min_bytes(const Context& context, const CentroidSearchArgs& args);

  // Takes as much of the budget as is useful: construct it after everything else that lives at the same time.
  CentroidSearch(const Context& context, const CentroidSearchArgs& args);

  // distances: reported distances, or empty. progress counts pairs of rows and centroids.
  void nearest(const RowsView& centroids, std::span<std::uint32_t> ids, std::span<float> distances,
               ProgressMeter* progress);

 private:
  std::unique_ptr<PreparedRows> prepare(const RowsView& rows, RowsRole role, ElementType against,
                                        std::size_t first_row);
  std::unique_ptr<PreparedRows> prepare_tile(std::size_t first);
  RowsView tile_of(std::size_t first) const;
  void assign(const RowsView& tile, const PreparedRows& prepared, const RowsView& centroids,
              const PreparedRows& block, std::span<std::uint32_t> ids, std::span<float> distances,
              ProgressMeter* progress);

  const CentroidSearchArgs args_;
  std::unique_ptr<Stream> stream_;
  std::vector<float> centre_;
  std::size_t tile_;
  bool keep_ = false;                                // keeps all packed tiles
  std::vector<std::unique_ptr<PreparedRows>> kept_;  // filled on first use
};

}  // namespace nearwise::cluster

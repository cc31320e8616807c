// The nearest centroid of every row, by exact search, in tiles of rows that fit the memory limit. Where it allows that, the
// rows are prepared once for all calls.
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

struct CentroidSearchArgs {
  RowsView rows;
  std::size_t max_centroids = 0;  // that a call of nearest() will get
  ElementType centroid_type = ElementType::f32;
  Metric metric = Metric::sqeuclidean;
  bool distances = false;  // will be wanted
  bool once = false;       // nearest() will be called once: what was prepared for it need not be kept
};

class CentroidSearch {
 public:
  // Bytes on the budget without which it cannot work.
  static std::uint64_t min_bytes(const Context& context, const CentroidSearchArgs& args);

  // Takes as much of the budget as is of use to it: make it after whatever else is needed at the same time.
  CentroidSearch(const Context& context, const CentroidSearchArgs& args);

  // distances: reported ones, or empty if nobody wants them. progress counts pairs of rows and centroids.
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
  bool keep_ = false;                                // all tiles, prepared
  std::vector<std::unique_ptr<PreparedRows>> kept_;  // once they were needed
};

}  // namespace nearwise::cluster

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>

#include "backend/cpu/finite_rows.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/prepared_rows.h"
#include "backend/cpu/stream.h"
#include "core/checked.h"

namespace nearwise::cpu {
namespace {

// Panels per task: large enough to hide the task's own cost, small enough to share among threads.
constexpr std::size_t task_panels = 16;

}  // namespace

PackedRows::PackedRows(MemoryBudget& budget, std::size_t row_count, std::size_t row_dim,
                       std::size_t panel_width, RowsRole role)
    : rows(row_count),
      dim(row_dim),
      width(panel_width),
      panel_count_(divide_up(row_count, panel_width)),
      panels(budget, checked_multiply(panel_count_ * width, dim, "knn")),
      biases(budget, role == RowsRole::base ? panel_count_ * width : 0),
      norms(budget, role == RowsRole::queries ? panel_count_ * width : 0) {}

std::size_t PackedRows::bytes_per_row(std::size_t dim, RowsRole role) {
  return dim * sizeof(float) + (role == RowsRole::base ? sizeof(float) : sizeof(double));
}

std::size_t PackedRows::scratch_bytes(std::size_t dim, std::size_t width) {
  return buffer_bytes(pack_group * dim, sizeof(float)) + buffer_bytes(width, sizeof(double));
}

std::unique_ptr<PreparedRows> prepare_rows(Stream& stream, const PrepareArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const RowsView& rows = args.rows;
  const std::size_t width =
      args.role == RowsRole::queries ? cpu.scan_panels.query_width : cpu.scan_panels.base_width;
  auto packed = std::make_unique<PackedRows>(cpu.budget(), rows.rows(), rows.dim(), width, args.role);
  const auto pack = cpu.pack_rows.pack[static_cast<std::size_t>(rows.type())];
  const bool biased = args.metric == Metric::sqeuclidean || args.metric == Metric::euclidean;

  std::atomic<std::size_t> first_bad_row{rows.rows()};
  std::mutex mutex;  // guards packed->largest_norm
  cpu.threads().for_each(divide_up(packed->panel_count(), task_panels), [&](std::size_t task) {
    cpu.context.cancel.check();
    Buffer<float> scratch(cpu.budget(), pack_group * rows.dim());
    Buffer<double> norms(cpu.budget(), width);
    double largest_norm = 0;
    const std::size_t end = std::min(packed->panel_count(), (task + 1) * task_panels);
    for (std::size_t index = task * task_panels; index < end; ++index) {
      const std::size_t first = index * width;
      const std::size_t count = std::min(width, rows.rows() - first);
      const std::size_t good = pack({.rows = rows.row(first),
                                     .stride_bytes = rows.stride_bytes(),
                                     .count = count,
                                     .dim = rows.dim(),
                                     .width = width,
                                     .centre = args.centre.empty() ? nullptr : args.centre.data(),
                                     .normalise = args.metric == Metric::cosine,
                                     .panel = packed->panel(index),
                                     .norms = norms.data(),
                                     .scratch = scratch.data()});
      if (good != count) {
        // Whichever thread finds one first: the lowest row is named.
        std::size_t lowest = first_bad_row.load();
        while (first + good < lowest && !first_bad_row.compare_exchange_weak(lowest, first + good)) {
        }
        return;
      }
      for (std::size_t r = 0; r < width; ++r) {
        const double norm = r < count ? norms[r] : 0;
        largest_norm = std::max(largest_norm, norm);
        if (args.role == RowsRole::queries) {
          packed->norms[first + r] = norm;
        } else {
          // Infinity keeps the empty places of the last panel out of every list.
          const double bias = biased ? norm * norm / 2 : 0;
          packed->biases[first + r] =
              r < count ? static_cast<float>(bias) : std::numeric_limits<float>::infinity();
        }
      }
    }
    const std::lock_guard lock(mutex);
    packed->largest_norm = std::max(packed->largest_norm, largest_norm);
  });
  if (first_bad_row.load() != rows.rows()) refuse_row(args.role, args.first_row + first_bad_row.load());
  return packed;
}

}  // namespace nearwise::cpu

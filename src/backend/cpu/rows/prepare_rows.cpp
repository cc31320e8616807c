#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>

#include "backend/cpu/operations.h"
#include "backend/cpu/rows/choose_scan.h"
#include "backend/cpu/rows/finite_rows.h"
#include "backend/cpu/rows/prepared_rows.h"
#include "backend/cpu/stream.h"
#include "core/checked.h"
#include "core/distance.h"

namespace nearwise::cpu {
namespace {

// Panels per task: enough to amortize the task, few enough to balance threads.
constexpr std::size_t task_panels = 16;

}  // namespace

// Flipping the highest bit shifts a query's elements by 128, up for i8 and down for u8. The bias compensates
// 128 times the sum of the row.
std::int32_t integer_bias(const PackedRow& row, Metric metric, const ScanKernel& kernel, ElementType type) {
  const std::int32_t moved = type == ElementType::i8 ? 128 : -128;
  const std::int32_t taken_back = kernel.query_encoding == Encoding::flipped_byte ? 2 * moved * row.sum : 0;
  return (is_euclidean(metric) ? row.squares : 0) + taken_back;
}

PackedRows::PackedRows(MemoryBudget& budget, const ScanKernel& scan, RowsRole rows_role,
                       std::size_t row_count, std::size_t row_dim)
    : kernel(scan),
      role(rows_role),
      rows(row_count),
      dim(row_dim),
      width(role == RowsRole::queries ? scan.query_width : scan.base_width),
      row_bytes(encoded_row_bytes(scan, row_dim)),
      panel_count_(divide_up(row_count, width)),
      panels_(budget, checked_multiply(panel_count_ * width, row_bytes, "knn")),
      biases(budget, role == RowsRole::base && !is_integer(scan.base_encoding) ? panel_count_ * width : 0),
      integer_biases(budget,
                     role == RowsRole::base && is_integer(scan.base_encoding) ? panel_count_ * width : 0),
      half_biases(budget, integer_biases.size()),
      scales(budget, is_scaled(scan.base_encoding) ? panel_count_ * width : 0),
      residuals(budget, role == RowsRole::base ? scales.size() : 0),
      starts(budget, role == RowsRole::queries ? scales.size() : 0),
      lengths(budget, role == RowsRole::queries ? row_count : 0) {}

std::size_t PackedRows::bytes_per_row(const ScanKernel& kernel, RowsRole role, std::size_t dim) {
  const std::size_t bias_bytes = is_integer(kernel.base_encoding) ? 2 * sizeof(std::int32_t) : sizeof(float);
  // A scale, and a residual or the start of sums.
  const std::size_t scale_bytes = is_scaled(kernel.base_encoding) ? sizeof(float) + sizeof(std::int32_t) : 0;
  return encoded_row_bytes(kernel, dim) + scale_bytes +
         (role == RowsRole::base ? bias_bytes : sizeof(Lengths));
}

std::size_t PackedRows::scratch_bytes(const ScanKernel& kernel, std::size_t dim) {
  return buffer_bytes(pack_scratch_bytes(dim, encoded_row_bytes(kernel, dim)), 1) +
         buffer_bytes(std::max(kernel.query_width, kernel.base_width), sizeof(PackedRow));
}

PanelPacker::PanelPacker(CpuStream& cpu, const PrepareArgs& args, PackedRows& out)
    : args_(args),
      out_(out),
      encoding_(out.role == RowsRole::queries ? out.kernel.query_encoding : out.kernel.base_encoding),
      pack_(cpu.pack_rows
                .pack[static_cast<std::size_t>(encoding_)][static_cast<std::size_t>(args.rows.type())]),
      scratch_(cpu.budget(), pack_scratch_bytes(out.dim, out.row_bytes)),
      measured_(cpu.budget(), out.width) {}

std::size_t PanelPacker::pack(std::size_t index) {
  const std::size_t first = index * out_.width;
  return pack(index, first, std::min(out_.width, out_.rows - first));
}

std::size_t PanelPacker::pack(std::size_t index, std::size_t first_row, std::size_t count) {
  const bool queries = out_.role == RowsRole::queries;
  const bool integers = is_integer(encoding_);
  const std::size_t good =
      pack_({.rows = args_.rows.row(first_row),
             .stride_bytes = args_.rows.stride_bytes(),
             .count = count,
             .dim = out_.dim,
             .width = out_.width,
             .unit_bytes = queries ? out_.kernel.query_unit_bytes : out_.kernel.base_unit_bytes,
             .row_bytes = out_.row_bytes,
             .centre = args_.centre.empty() || integers ? nullptr : args_.centre.data(),
             .normalise = args_.metric == Metric::cosine,
             .precise = queries,
             .panel = out_.panel(index),
             .packed = measured_.data(),
             .scratch = scratch_.data()});
  if (good != count) return first_row + good;
  const std::size_t first = index * out_.width;
  for (std::size_t r = 0; r < count; ++r) {
    if (queries)
      take_query(first + r, measured_[r]);
    else
      take_row(first + r, measured_[r]);
  }
  for (std::size_t r = count; r < out_.width; ++r) pad(first + r);
  for (std::size_t r = 0; r < out_.width && integers && !queries; ++r)
    out_.half_biases[first + r] = out_.integer_biases[first + r] >> 1;
  return good_panel;
}

void PanelPacker::take_query(std::size_t place, const PackedRow& row) {
  out_.lengths[place] = {row.norm, row.residual};
  longest_ = longer(out_.lengths[place], longest_);
  if (!is_scaled(encoding_)) return;
  out_.scales[place] = row.scale;
  // Takes back 128 times the query, which unsigned rows are moved by.
  out_.starts[place] = out_.kernel.base_encoding == Encoding::scaled_unsigned_byte ? -128 * row.sum : 0;
}

void PanelPacker::take_row(std::size_t place, const PackedRow& row) {
  double residual = row.residual;
  double bias = is_euclidean(args_.metric) ? row.norm * row.norm / 2 : 0;
  if (is_scaled(encoding_)) {
    // Rounded up, and the bound counts what scores are computed with.
    // Zero stays zero: denormal factors are slow.
    const auto nearest = static_cast<float>(residual);
    out_.residuals[place] =
        residual == 0 ? 0 : std::nextafter(nearest, std::numeric_limits<float>::infinity());
    residual = out_.residuals[place];
    out_.scales[place] = row.scale;
    if (is_euclidean(args_.metric)) bias -= residual * residual / 2;
  }
  // Bounds the rounding error of norms computed in f32.
  const double norm_margin = 1 + static_cast<double>(out_.dim) * 0x1p-24;
  longest_ = longer({row.norm * norm_margin, residual}, longest_);
  if (is_integer(encoding_))
    out_.integer_biases[place] = integer_bias(row, args_.metric, out_.kernel, args_.rows.type());
  else
    out_.biases[place] = static_cast<float>(bias);
}

// Padding of a panel is read: the largest bias passes no cutoff.
void PanelPacker::pad(std::size_t place) {
  if (is_scaled(encoding_)) out_.scales[place] = 0;
  if (out_.role == RowsRole::queries) {
    if (is_scaled(encoding_)) out_.starts[place] = 0;
  } else if (is_integer(encoding_)) {
    out_.integer_biases[place] = std::numeric_limits<std::int32_t>::max();
  } else {
    out_.biases[place] = std::numeric_limits<float>::infinity();
    if (is_scaled(encoding_)) out_.residuals[place] = 0;
  }
}

std::unique_ptr<PreparedRows> prepare_rows(Stream& stream, const PrepareArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const RowsView& rows = args.rows;
  const bool queries = args.role == RowsRole::queries;
  const auto choose = args.coarse ? choose_screen : choose_scan;
  const ScanKernel kernel = choose(cpu.set, args.metric, queries ? args.type : args.against,
                                   queries ? args.against : args.type, rows.dim());
  auto packed = std::make_unique<PackedRows>(cpu.budget(), kernel, args.role, rows.rows(), rows.dim());
  std::atomic<std::size_t> first_bad_row{rows.rows()};
  std::mutex mutex;  // of packed->longest
  cpu.threads().for_each(divide_up(packed->panel_count(), task_panels), [&](std::size_t task) {
    cpu.context.cancel.check();
    PanelPacker packer(cpu, args, *packed);
    const std::size_t end = std::min(packed->panel_count(), (task + 1) * task_panels);
    for (std::size_t index = task * task_panels; index < end; ++index) {
      const std::size_t bad = packer.pack(index);
      if (bad == PanelPacker::good_panel) continue;
      // Report the lowest row, whichever thread finds one first.
      std::size_t lowest = first_bad_row.load();
      while (bad < lowest && !first_bad_row.compare_exchange_weak(lowest, bad)) {
      }
      return;
    }
    const std::lock_guard lock(mutex);
    packed->longest = longer(packed->longest, packer.longest());
  });
  if (first_bad_row.load() != rows.rows()) refuse_row(args.role, args.first_row + first_bad_row.load());
  return packed;
}

}  // namespace nearwise::cpu

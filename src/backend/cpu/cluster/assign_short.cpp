#include "backend/cpu/cluster/assign_short.h"

#include <algorithm>

#include "backend/cpu/kernels/codes/codeword_columns.h"
#include "backend/cpu/rows/rows_to_floats.h"
#include "core/checked.h"
#include "core/progress.h"

namespace nearwise::cpu {
namespace {

// For longer vectors, a scan by products is faster than squaring differences.
constexpr std::size_t max_dim = 8;
// Vectors per task, and vectors converted to f32 at a time, which fit the L1 cache.
constexpr std::size_t task_rows = 1024;
constexpr std::size_t step_rows = 128;

}  // namespace

bool may_be_short(std::size_t dim, Metric metric, ElementType base_type) {
  return dim <= max_dim && metric == Metric::sqeuclidean && base_type == ElementType::f32;
}

std::uint64_t assign_short_bytes(std::size_t dim) {
  return 2 * buffer_bytes(dim * max_codewords, sizeof(float)) +
         buffer_bytes(distinct_words, sizeof(std::uint64_t));
}

bool assign_short(CpuStream& cpu, const AssignArgs& args) {
  const std::size_t dim = args.base.dim();
  const std::size_t count = args.base.rows();
  if (!may_be_short(dim, args.metric, args.base.type()) || count > max_codewords) return false;
  Buffer<float> values(cpu.budget(), dim * count);
  rows_to_floats(args.base, values.data());
  Buffer<float> columns(cpu.budget(), dim * padded_codewords(count));
  Buffer<std::uint64_t> distinct(cpu.budget(), distinct_words);
  fill_codeword_columns(values.data(), count, dim, columns.data(), distinct.data());
  const CodewordKernels& kernels = codeword_kernels(cpu.set);
  const RowsView& rows = args.query_rows;
  cpu.threads().for_each(divide_up(rows.rows(), task_rows), [&](std::size_t task) {
    cpu.context.cancel.check();
    const std::size_t end = std::min(rows.rows(), (task + 1) * task_rows);
    float floats[step_rows * max_dim];
    std::uint8_t nearest[step_rows];
    for (std::size_t first = task * task_rows; first < end; first += step_rows) {
      const RowsView step = rows.slice(first, std::min(step_rows, end - first));
      rows_to_floats(step, floats);
      kernels.nearest({.codewords = {.values = values.data(),
                                     .columns = columns.data(),
                                     .dim = dim,
                                     .count = padded_codewords(count),
                                     .distinct = distinct.data()},
                       .rows = floats,
                       .stride = dim,
                       .count = step.rows(),
                       .nearest = nearest,
                       .distances = args.distances.empty() ? nullptr : args.distances.data() + first});
      std::copy_n(nearest, step.rows(), args.nearest.begin() + static_cast<std::ptrdiff_t>(first));
    }
    if (args.progress != nullptr) args.progress->add((end - task * task_rows) * count);
  });
  return true;
}

}  // namespace nearwise::cpu

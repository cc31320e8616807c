// Products of f64 matrices stored in strips: the inner loop of matrix decompositions.
#include <algorithm>
#include <cstddef>
#include <string>

#include "backend/backend.h"
#include "backend/cpu/kernels/block_products.h"
#include "core/checked.h"

namespace nearwise {
namespace {

using cpu::block_width;

static_assert(StripsView::width == block_width);

// Strips and row blocks of a task. Two strips share the loads of `left`, eight row blocks those of `right`:
// 32 KiB of factors per strip and pair of row blocks stay in the caches.
constexpr std::size_t task_strips = 2;
constexpr std::size_t task_row_blocks = 8;
constexpr std::size_t chunk_blocks = 2;  // blocks of terms that fit the L1 cache
// Minimum work of a task, about 0.1 ms: smaller ones cost more to start than to run.
constexpr std::size_t min_task_blocks = 64;

}  // namespace

void subtract_products(Context::State& context, const SubtractProductsArgs& args) {
  if (args.terms.count() == 0 || args.left_strips.count() == 0) return;
  // On other devices the option does not name a CPU instruction set.
  const std::string isa = context.place.kind == DeviceKind::cpu ? context.options.isa : "";
  const cpu::BlockProductKernels& kernels = cpu::block_product_kernels(cpu::choose_instruction_set(isa));
  const std::size_t row_blocks = std::min(task_row_blocks, args.left_strips.count());
  const std::size_t strips =
      std::max(task_strips, divide_up(min_task_blocks, row_blocks * args.terms.count()));
  const std::size_t row_tasks = divide_up(args.left_strips.count(), row_blocks);
  const std::size_t tasks = row_tasks * divide_up(args.right_strips.count(), strips);
  context.threads->for_each(tasks, [&](std::size_t task) {
    const std::size_t first_row = args.left_strips.first + task % row_tasks * row_blocks;
    const std::size_t end_row = std::min(first_row + row_blocks, args.left_strips.end);
    const std::size_t first_strip = args.right_strips.first + task / row_tasks * strips;
    const std::size_t end_strip = std::min(first_strip + strips, args.right_strips.end);
    if (args.upper && end_strip <= first_row) return;
    for (std::size_t k = args.terms.first; k < args.terms.end; k += chunk_blocks) {
      context.cancel.check();
      const std::size_t terms = std::min(chunk_blocks, args.terms.end - k) * block_width;
      for (std::size_t row = first_row; row < end_row; ++row)
        for (std::size_t strip = first_strip; strip < end_strip; ++strip)
          if (!args.upper || strip >= row)
            kernels.subtract(args.sums.block(row, strip), args.left.block(k, row), args.right.block(k, strip),
                             terms);
    }
  });
}

}  // namespace nearwise

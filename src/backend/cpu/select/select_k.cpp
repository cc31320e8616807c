// select_k: distributes rows among threads, or parts of rows if rows are few and long.
#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

#include "backend/cpu/kernels/selection_key.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/select/row_selector.h"
#include "backend/cpu/stream.h"
#include "core/checked.h"
#include "core/progress.h"

namespace nearwise::cpu {
namespace {

// Positions within a part have 32 bits.
constexpr std::size_t longest_part = std::size_t{1} << 31;
// Shorter parts, read in less than 10 us, are not worth waking a thread.
constexpr std::size_t shortest_part = std::size_t{1} << 16;

struct Plan {
  std::size_t parts = 1;    // per row
  std::size_t columns = 0;  // maximum per part
  std::size_t workers = 1;  // concurrent selectors
};

// Budgeted bytes of a plan: a selector per worker, and the keys of one row's parts.
std::uint64_t plan_bytes(const Plan& plan, std::size_t k) {
  const std::uint64_t keys =
      plan.parts == 1 ? 0 : plan.parts * buffer_bytes(std::min(k, plan.columns), sizeof(std::int64_t));
  return keys + plan.workers * RowSelector::bytes(plan.columns, k);
}

Plan plan_for(const SelectKShape& shape, std::size_t parts, std::size_t workers) {
  return {parts, divide_up(shape.cols, parts), std::min(workers, parts == 1 ? shape.rows : parts)};
}

Plan min_plan(const SelectKShape& shape) { return plan_for(shape, divide_up(shape.cols, longest_part), 1); }

// As many workers as memory allows; rows are split only if there are fewer of them than threads.
Plan choose_plan(const SelectKShape& shape, std::size_t threads, std::uint64_t available) {
  const Plan least = min_plan(shape);
  if (threads > 1 && shape.rows < 2 * threads) {
    const std::size_t useful = shape.cols / std::max(shortest_part, 4 * shape.k);
    const std::size_t parts = std::max(least.parts, std::min(2 * threads, useful));
    const Plan cut = plan_for(shape, parts, threads);
    if (parts > 1 && plan_bytes(cut, shape.k) <= available) return cut;
  }
  for (std::size_t workers = threads; workers > 1; --workers) {
    const Plan plan = plan_for(shape, least.parts, workers);
    if (plan_bytes(plan, shape.k) <= available) return plan;
  }
  return least;
}

void write_entry(const float* row, const RowIds& row_ids, Order order, std::int64_t key, Id& id,
                 float& value) {
  const std::uint32_t position = position_of_key(key);
  const std::int32_t image = image_of_key(key);
  id = row_ids.at(position);
  // The image determines the value except for the sign of zero and the bits of NaN.
  value = image == 0 || image == nan_image ? row[position] : number_of_image(image, order);
}

// Workers take whole rows from a shared counter.
void select_rows(CpuStream& cpu, const SelectKArgs& args, const Plan& plan) {
  std::atomic<std::size_t> next = 0;
  cpu.threads().for_each(plan.workers, [&](std::size_t) {
    RowSelector selector(cpu, plan.columns, args.k);
    for (std::size_t row; (row = next.fetch_add(1, std::memory_order_relaxed)) < args.values.rows();) {
      const float* const values = args.values.row(row).data();
      const RowIds row_ids = args.column_ids.row(row);
      const auto keys = selector.select(values, args.values.cols(), row_ids, args.order);
      Id* const ids = args.ids.row(row).data();
      float* const best = args.best.row(row).data();
      for (std::size_t i = 0; i < keys.size(); ++i)
        write_entry(values, row_ids, args.order, keys[i], ids[i], best[i]);
      if (args.progress != nullptr) args.progress->add(args.values.cols());
    }
  });
}

// Sorted keys of one part of a row, and the position of the merge.
struct Part {
  std::size_t first_column = 0;
  RowIds ids;
  std::span<const std::int64_t> keys;

  bool comes_before(const Part& other) const {
    const std::int32_t image = image_of_key(keys.front());
    const std::int32_t other_image = image_of_key(other.keys.front());
    if (image != other_image) return image < other_image;
    const Id id = ids.at(position_of_key(keys.front()));
    const Id other_id = other.ids.at(position_of_key(other.keys.front()));
    return id != other_id ? id < other_id : first_column < other.first_column;
  }
};

void merge_parts(const CpuStream& cpu, const SelectKArgs& args, std::size_t row, std::vector<Part>& parts) {
  const auto later = [](const Part& left, const Part& right) { return right.comes_before(left); };
  std::erase_if(parts, [](const Part& part) { return part.keys.empty(); });
  std::make_heap(parts.begin(), parts.end(), later);
  for (std::size_t i = 0; i < args.k; ++i) {
    if (i % 65536 == 0) cpu.context.cancel.check();
    std::pop_heap(parts.begin(), parts.end(), later);
    Part& part = parts.back();
    write_entry(args.values.row(row).data() + part.first_column, part.ids, args.order, part.keys.front(),
                args.ids(row, i), args.best(row, i));
    part.keys = part.keys.subspan(1);
    if (part.keys.empty())
      parts.pop_back();
    else
      std::push_heap(parts.begin(), parts.end(), later);
  }
}

// One row at a time; workers take its parts from a shared counter.
void select_in_parts(CpuStream& cpu, const SelectKArgs& args, const Plan& plan) {
  const std::size_t kept = std::min(args.k, plan.columns);
  std::vector<Buffer<std::int64_t>> keys;
  for (std::size_t i = 0; i < plan.parts; ++i) keys.emplace_back(cpu.budget(), kept);
  std::vector<RowSelector> selectors;
  for (std::size_t i = 0; i < plan.workers; ++i) selectors.emplace_back(cpu, plan.columns, args.k);
  for (std::size_t row = 0; row < args.values.rows(); ++row) {
    std::vector<Part> parts(plan.parts);
    std::atomic<std::size_t> next = 0;
    cpu.threads().for_each(plan.workers, [&](std::size_t worker) {
      for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < plan.parts;) {
        const std::size_t first = std::min(args.values.cols(), i * plan.columns);
        const std::size_t count = std::min(args.values.cols() - first, plan.columns);
        const RowIds ids = args.column_ids.row(row).from(first);
        const auto found =
            selectors[worker].select(args.values.row(row).data() + first, count, ids, args.order);
        std::copy(found.begin(), found.end(), keys[i].data());
        parts[i] = {first, ids, {keys[i].data(), found.size()}};
        if (args.progress != nullptr) args.progress->add(count);
      }
    });
    merge_parts(cpu, args, row, parts);
  }
}

}  // namespace

std::uint64_t select_k_bytes(const Stream&, const SelectKShape& shape) {
  return plan_bytes(min_plan(shape), shape.k);
}

void select_k(Stream& stream, const SelectKArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const SelectKShape shape = {args.values.rows(), args.values.cols(), args.k};
  const Plan plan =
      choose_plan(shape, static_cast<std::size_t>(cpu.threads().count()), cpu.budget().available());
  if (plan.parts == 1)
    select_rows(cpu, args, plan);
  else
    select_in_parts(cpu, args, plan);
}

}  // namespace nearwise::cpu

#include "backend/cpu/exact/filtered_biases.h"

#include <algorithm>
#include <limits>

#include "core/checked.h"

namespace nearwise::cpu {
namespace {

constexpr std::size_t group = 16;         // rows of one word of bits
constexpr std::size_t task_rows = 16384;  // a few microseconds
constexpr float denied_bias = std::numeric_limits<float>::infinity();
// In max_filtered_dim dimensions products are below 2^27 and scores below 2^28: with this bias, a score is at
// least (2^30 - 2^28) / 2, and nothing exceeds 32 bits.
constexpr std::int32_t denied_integer_bias = 1 << 30;
constexpr std::size_t max_filtered_dim = 2048;

}  // namespace

bool FilteredBiases::can_mask(const ScanKernel& scan, std::size_t dim) {
  return !is_integer(scan.base_encoding) || dim <= max_filtered_dim;
}

FilteredBiases::FilteredBiases(CpuStream& cpu, const KnnBlockArgs& args, const PackedRows& block)
    : width_(block.width), panels_(block.panel_count()) {
  const bool integers = is_integer(block.kernel.base_encoding);
  floats_ = integers ? nullptr : block.biases.data();
  integers_ = integers ? block.integer_biases.data() : nullptr;
  halves_ = integers ? block.half_biases.data() : nullptr;
  if (!args.allowed.any()) return;
  const std::size_t places = panels_ * width_;
  own_bits_ = Buffer<std::uint16_t>(cpu.budget(), divide_up(places, group));
  if (integers)
    own_integers_ = Buffer<std::int32_t>(cpu.budget(), 2 * places);
  else
    own_floats_ = Buffer<float>(cpu.budget(), places);
  const RowBits rows = args.allowed.from_row(args.first_row);
  cpu.threads().for_each(divide_up(places, task_rows), [&](std::size_t task) {
    const std::size_t end = std::min(places, (task + 1) * task_rows);
    for (std::size_t first = task * task_rows; first < end; first += group) {
      const std::size_t there = std::min(group, args.block_rows - std::min(args.block_rows, first));
      std::uint16_t bits = there == 0 ? std::uint16_t{0} : rows.sixteen(first);
      bits = static_cast<std::uint16_t>(bits & ((1U << there) - 1));
      own_bits_[first / group] = bits;
      for (std::size_t i = 0; i < std::min(group, places - first); ++i) {
        const bool is_allowed = (bits >> i & 1U) != 0;
        if (integers) {
          own_integers_[first + i] = is_allowed ? integers_[first + i] : denied_integer_bias;
          own_integers_[places + first + i] = is_allowed ? halves_[first + i] : denied_integer_bias / 2;
        } else {
          own_floats_[first + i] = is_allowed ? floats_[first + i] : denied_bias;
        }
      }
    }
  });
  bits_ = own_bits_.data();
  floats_ = integers ? nullptr : own_floats_.data();
  integers_ = integers ? own_integers_.data() : nullptr;
  halves_ = integers ? own_integers_.data() + places : nullptr;
}

bool FilteredBiases::any_allowed(std::size_t first, std::size_t count) const {
  if (bits_ == nullptr) return true;
  const std::size_t end = std::min(panels_, first + count);
  // Narrow panels share a word.
  return std::any_of(bits_ + first * width_ / group, bits_ + divide_up(end * width_, group),
                     [](std::uint16_t bits) { return bits != 0; });
}

}  // namespace nearwise::cpu

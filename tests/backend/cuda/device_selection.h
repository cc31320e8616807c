// One generated selection on the device, compared with the oracle.
//
// A case is a pure function of its fields: those in a failure message reproduce it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/rows/row_selection.h"
#include "support/device_array.h"
#include "support/select_cases.h"

namespace nearwise::support {

struct DeviceSelection {
  RowKind kind = RowKind::uniform;
  std::size_t rows = 1;
  std::size_t cols = 1;
  std::size_t k = 1;
  gpu::Ties ties = gpu::Ties::positions;
  Order order = Order::smallest;
  gpu::tuning::RowSplit cuts = {};

  std::string description() const {
    constexpr std::array<const char*, 3> ties_names = {"positions", "narrow ids", "wide ids"};
    return fmt::format("{}, {} x {}, k {}, {}, {}, parts of {} columns", name(kind), rows, cols, k,
                       ties_names[static_cast<std::size_t>(ties)],
                       order == Order::largest ? "largest" : "smallest", cuts.min_columns);
  }

  ValueRows values() const { return {kind, rows, cols, 1000 + cols, 3}; }

  // Descending with repetitions, so that position and id never agree by chance; one row for all.
  std::vector<Id> ids() const {
    const Random random = random_for(cols, Purpose::rows);
    std::vector<Id> ids(cols);
    for (std::size_t i = 0; i < cols; ++i) {
      const auto number = static_cast<Id>(random.below(i, cols * 3 / 4 + 1));
      ids[i] = ties == gpu::Ties::positions    ? static_cast<Id>(i)
               : ties == gpu::Ties::narrow_ids ? number * 200'000
                                               : (number - static_cast<Id>(cols / 4)) * (Id{1} << 30);
    }
    return ids;
  }

  Selection run() const {
    const ValueRows host_values = values();
    const MatrixView<const float> view = host_values;
    const std::vector<Id> host_ids = ids();
    DeviceArray<float> device_values(std::span(view.data(), rows * view.stride()));
    DeviceArray<std::uint32_t> narrow(std::vector<std::uint32_t>(host_ids.begin(), host_ids.end()));
    DeviceArray<Id> wide(host_ids);
    DeviceArray<float> best(rows * k);
    DeviceArray<Id> best_ids(rows * k);
    const gpu::RowSelection selection(rows, cols, k, cuts);
    DeviceArray<std::byte> workspace(selection.workspace_bytes());
    selection.run(nullptr, ties,
                  {.values = device_values.data(),
                   .value_stride = view.stride(),
                   .narrow_ids = ties == gpu::Ties::narrow_ids ? narrow.data() : nullptr,
                   .wide_ids = ties == gpu::Ties::wide_ids ? wide.data() : nullptr,
                   .rows = rows,
                   .cols = static_cast<std::uint32_t>(cols),
                   .k = static_cast<std::uint32_t>(k),
                   .sign_mask = order == Order::largest ? INT32_MIN : 0,
                   .best = best.data(),
                   .ids = best_ids.data(),
                   .best_stride = k},
                  workspace.data());
    Selection result{Matrix<Id>(rows, k), Matrix<float>(rows, k)};
    std::ranges::copy(best_ids.to_host(), result.ids.data());
    std::ranges::copy(best.to_host(), result.values.data());
    return result;
  }

  testing::AssertionResult matches_oracle() const {
    const std::vector<Id> column_ids = ids();
    const auto expected = oracle::select_k(
        values(), k, order, [&](std::size_t, std::size_t column) { return column_ids[column]; });
    return same(expected, run());
  }

  void expect_oracle() const { EXPECT_TRUE(matches_oracle()) << description(); }
};

inline constexpr std::array every_ties = {gpu::Ties::positions, gpu::Ties::narrow_ids, gpu::Ties::wide_ids};

}  // namespace nearwise::support

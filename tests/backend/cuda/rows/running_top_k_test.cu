// Running top-k against the oracle's selection from all tiles at once.
//
// Catches thresholds that exclude values equal to none in the list, entries left out of a merge, NaNs that
// change places with empty entries, lists that are shorter than k.
#include "backend/cuda/rows/running_top_k.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "backend/cuda/device/host_results.h"
#include "support/device_array.h"
#include "support/select_cases.h"

namespace nearwise {
namespace {

using support::RowKind;

class CudaRunningTopK : public gpu::CudaTest, public testing::WithParamInterface<RowKind> {};

INSTANTIATE_TEST_SUITE_P(Kind, CudaRunningTopK, testing::ValuesIn(support::every_row_kind),
                         [](const auto& instance) { return std::string(support::name(instance.param)); });

struct Case {
  RowKind kind = RowKind::uniform;
  std::size_t length = 1;
  Order order = Order::smallest;
  std::vector<std::size_t> tiles;  // rows of each
};

// Three queries, in tiles of two.
void expect_oracle(const Case& given) {
  constexpr std::size_t queries = 3;
  constexpr std::size_t tile_queries = 2;
  const std::size_t rows = std::accumulate(given.tiles.begin(), given.tiles.end(), std::size_t{0});
  const support::ValueRows made(given.kind, queries, rows, given.length);
  const MatrixView<const float> values = made;
  const Context context = Context::cuda(0);
  const gpu::CudaStream stream(context.state());
  gpu::RunningTopK best(stream, queries, given.length, "test", given.order);
  std::size_t first = 0;
  for (const std::size_t count : given.tiles) {
    support::DeviceArray<std::byte> workspace(
        gpu::RunningTopK::workspace_bytes(tile_queries, count, given.length));
    for (std::size_t query = 0; query < queries; query += tile_queries) {
      std::vector<float> tile;
      const std::size_t tile_end = std::min(queries, query + tile_queries);
      for (std::size_t i = query; i < tile_end; ++i) {
        const auto part = values.row(i).subspan(first, count);
        tile.insert(tile.end(), part.begin(), part.end());
      }
      const support::DeviceArray<float> on_device(tile);
      best.add(stream, {on_device.data(), tile_end - query, count, first}, query, tile_queries,
               workspace.data());
      stream.synchronize("test");
    }
    first += count;
  }
  std::vector<float> found(queries * given.length);
  std::vector<Id> ids(queries * given.length);
  gpu::fetch(stream, best.values(0), std::span(found), "test");
  gpu::fetch(stream, best.rows(0), std::span(ids), "test");
  const auto expected = oracle::select_k(values, given.length, given.order, support::column_number);
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(ids[i], expected.ids[i]) << "entry " << i;
    if (ids[i] == no_id)
      ASSERT_TRUE(std::isnan(found[i])) << "entry " << i;
    else
      ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(expected.values[i]))
          << "entry " << i;
  }
}

// Tiles that leave a list unfilled, fill it, and exceed it; of one row; and cut into two parts. Reduction,
// short and long queues, radix selection.
TEST_P(CudaRunningTopK, IsTheSelectionFromAllTiles) {
  const std::vector<std::vector<std::size_t>> short_tiles = {
      {7, 20, 300, 1, 90, 64}, {500, 500, 499}, {40}, {1, 1, 1, 2}};
  std::uint64_t number = static_cast<std::uint64_t>(GetParam());
  for (const std::size_t length : {1, 2, 32, 61})
    for (const std::vector<std::size_t>& tiles : short_tiles) {
      const Order order = support::both_orders[number / 3 % 2];
      SCOPED_TRACE(fmt::format("length {}, {} tiles from {} rows, order {}", length, tiles.size(),
                               tiles.front(), static_cast<int>(order)));
      if (gpu::is_due(number++)) expect_oracle({GetParam(), length, order, tiles});
      if (HasFatalFailure()) return;
    }
  for (const std::size_t length : {300, 1030}) {
    const Order order = support::both_orders[number % 2];
    SCOPED_TRACE(length);
    if (gpu::is_due(number++)) expect_oracle({GetParam(), length, order, {200, 1100, 1300}});
    if (HasFatalFailure()) return;
  }
  if (gpu::is_due(number)) expect_oracle({GetParam(), 20, Order::smallest, {8200, 8300, 100}});
}

}  // namespace
}  // namespace nearwise

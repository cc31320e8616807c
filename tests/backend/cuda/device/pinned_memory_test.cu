// Copies through pinned memory: the source may change at once, and results arrive together.
#include "backend/cuda/device/pinned_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/device/host_results.h"
#include "backend/cuda/rows/row_copy.h"

namespace nearwise::gpu {
namespace {

class CudaPinnedMemory : public CudaTest {
 protected:
  std::vector<std::uint32_t> on_host(const DeviceBuffer<std::uint32_t>& from) const {
    std::vector<std::uint32_t> read(from.size());
    fetch<std::uint32_t>(stream(), from.data(), read, "test");
    return read;
  }

  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    context_.emplace(Context::cuda(0));
    opened_.emplace(context_->state());
  }
  void TearDown() override {
    opened_.reset();  // returns what it holds, which is then released
    CudaTest::TearDown();
  }
  const CudaStream& stream() const { return *opened_; }

 private:
  std::optional<Context> context_;
  std::optional<CudaStream> opened_;
};

std::vector<std::uint32_t> numbers(std::size_t count, std::uint32_t first) {
  std::vector<std::uint32_t> made(count);
  std::iota(made.begin(), made.end(), first);
  return made;
}

// Of more than the memory holds, in pieces that do not divide it. Queued copies run late on the emulated
// device: memory that is used again too early shows.
TEST_F(CudaPinnedMemory, SourcesMayChangeAtOnce) {
  for (const std::size_t piece :
       {std::size_t{1}, std::size_t{1000}, std::size_t{70'001}, std::size_t{300'000}}) {
    constexpr std::size_t count = 600'000;
    const std::size_t pieces = std::min<std::size_t>(count / piece, 40);
    DeviceBuffer<std::uint32_t> copied(stream(), pieces * piece, "test");
    std::vector<std::uint32_t> expected;
    for (std::size_t i = 0; i < pieces; ++i) {
      std::vector<std::uint32_t> source = numbers(piece, static_cast<std::uint32_t>(7 * i));
      expected.insert(expected.end(), source.begin(), source.end());
      copy_to_device<std::uint32_t>(stream(), source, copied.data() + i * piece, "test");
      source.assign(piece, 0);
    }
    EXPECT_EQ(on_host(copied), expected) << piece;
  }
}

TEST_F(CudaPinnedMemory, RowsArriveWithoutWhatIsBetweenThem) {
  constexpr std::size_t stride = 7;
  // Rows of the last shape are longer than half of the memory.
  for (const auto& [rows, cols] :
       {std::pair<std::size_t, std::size_t>{1, 3}, {5, 1}, {40'000, 5}, {3, 90'000}}) {
    const std::size_t step = cols + stride;
    std::vector<std::uint32_t> source = numbers(rows * step, 3);
    DeviceBuffer<std::uint32_t> copied(stream(), rows * cols, "test");
    send_rows(stream(), copied.data(), source.data(), step, cols, rows, "test");
    std::vector<std::uint32_t> expected;
    for (std::size_t row = 0; row < rows; ++row)
      expected.insert(expected.end(), source.begin() + static_cast<std::ptrdiff_t>(row * step),
                      source.begin() + static_cast<std::ptrdiff_t>(row * step + cols));
    source.assign(source.size(), 0);
    EXPECT_EQ(on_host(copied), expected) << rows << " x " << cols;
  }
}

TEST_F(CudaPinnedMemory, ResultsArriveTogether) {
  // The last one does not fit.
  const std::vector<std::size_t> sizes = {3, 1, 40'000, 0, 20'000, 30'000};
  std::vector<std::vector<std::uint32_t>> expected;
  std::vector<std::vector<std::uint32_t>> read;
  std::vector<DeviceBuffer<std::uint32_t>> sources;
  for (const std::size_t size : sizes) {
    expected.push_back(numbers(size, static_cast<std::uint32_t>(size)));
    read.emplace_back(size);
    sources.emplace_back(stream(), size, "test");
    copy_to_device<std::uint32_t>(stream(), expected.back(), sources.back().data(), "test");
  }
  HostResults results(stream());
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (std::vector<std::uint32_t>& each : read) each.assign(each.size(), 0);
    for (std::size_t i = 0; i < sizes.size(); ++i) results.add(sources[i].data(), std::span(read[i]), "test");
    results.finish("test");
    EXPECT_EQ(read, expected);
  }
}

}  // namespace
}  // namespace nearwise::gpu

// Rows of a section made by all threads: in their order, whatever their length, and failures arrive.
#include "plan/tasks/write_rows.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/parallel.h"
#include "io/container/container_reader.h"
#include "io/failing_calls.h"
#include "io/temporary_folder.h"
#include "nearwise/error.h"
#include "support/error_of.h"

namespace nearwise::plan {
namespace {

using testing_io::FailingCalls;
using testing_io::TemporaryFolder;

struct Case {
  std::size_t count;
  std::size_t row_bytes;
};

class WriteRowsThreads : public ::testing::TestWithParam<Case> {
 protected:
  static void make(std::size_t row, std::byte* out, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>((row * 31 + i * 7) % 251);
  }
  static void begin(ContainerWriter& file, std::size_t row_bytes) {
    file.write_metadata(nlohmann::json::object());
    file.begin_section("rows", container::Element::u8, {.columns = row_bytes});
  }

  const TemporaryFolder folder;
  const Context context = Context::cpu({.threads = 3});
};

TEST_P(WriteRowsThreads, AreThereInTheirOrder) {
  const std::size_t count = GetParam().count;
  const std::size_t row_bytes = GetParam().row_bytes;
  {
    ContainerWriter file(folder / "rows.nw", "test");
    begin(file, row_bytes);
    write_rows(context, file, count, row_bytes,
               [&](std::size_t row, std::byte* out) { make(row, out, row_bytes); });
    file.commit();
  }
  EXPECT_EQ(context.memory_used(), 0U);
  const ContainerReader reader = ContainerReader::open(folder / "rows.nw");
  const auto rows = reader.section("rows").rows<std::uint8_t>();
  ASSERT_EQ(rows.rows(), count);
  std::vector<std::byte> expected(row_bytes);
  for (std::size_t row = 0; row < count; ++row) {
    make(row, expected.data(), row_bytes);
    ASSERT_EQ(std::memcmp(rows.row(row).data(), expected.data(), row_bytes), 0) << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, WriteRowsThreads,
                         ::testing::Values(Case{0, 4}, Case{1, 4}, Case{700'000, 4}, Case{9001, 512},
                                           Case{5, writing_bytes + 1}));

using WriteRowsLongThreads = WriteRowsThreads;

// A buffer holds 128 of these.
TEST_F(WriteRowsLongThreads, AreMadeBySeveral) {
  if (available_threads() < 2) GTEST_SKIP() << "needs two CPUs";
  constexpr std::size_t row_bytes = 8192;
  ContainerWriter file(folder / "rows.nw", "test");
  begin(file, row_bytes);
  std::mutex mutex;
  std::condition_variable entered;
  std::set<std::thread::id> makers;
  write_rows(context, file, 128, row_bytes, [&](std::size_t row, std::byte* out) {
    make(row, out, row_bytes);
    std::unique_lock lock(mutex);
    makers.insert(std::this_thread::get_id());
    entered.notify_all();
    // For another thread; 20 s if there is none.
    if (row == 0) entered.wait_for(lock, std::chrono::seconds(20), [&] { return makers.size() > 1; });
  });
  file.commit();
  EXPECT_GT(makers.size(), 1U);
}

using WriteRowsFailingThreads = WriteRowsThreads;

TEST_F(WriteRowsFailingThreads, OfMakingArrive) {
  ContainerWriter file(folder / "rows.nw", "test");
  begin(file, 512);
  EXPECT_THROW(write_rows(context, file, 20'000, 512,
                          [&](std::size_t row, std::byte* out) {
                            if (row == 15'000) throw std::runtime_error("made up");
                            make(row, out, 512);
                          }),
               std::runtime_error);
  EXPECT_EQ(context.memory_used(), 0U);
}

TEST_F(WriteRowsFailingThreads, OfWritingArrive) {
  ContainerWriter file(folder / "rows.nw", "test");
  begin(file, 512);
  const FailingCalls full({.fail_call = 3, .error = ENOSPC});
  const Error error = support::error_of([&] {
    write_rows(context, file, 20'000, 512, [&](std::size_t row, std::byte* out) { make(row, out, 512); });
  });
  EXPECT_EQ(error.code(), ErrorCode::io) << error.what();
  EXPECT_EQ(context.memory_used(), 0U);
}

}  // namespace
}  // namespace nearwise::plan

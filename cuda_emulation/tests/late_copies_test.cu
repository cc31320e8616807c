// Late copies: sources in pageable memory that change or vanish before the copy runs are reported, and
// nothing else is.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "cuda_emulation/control.h"
#include "support/device_array.h"

namespace cuda_emulation {
namespace {

using nearwise::support::DeviceArray;

constexpr std::size_t count = 64;
constexpr std::size_t bytes = count * sizeof(int);

cudaError_t send(int* to, const int* from, std::size_t size = bytes) {
  return cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, nullptr);
}

// Its variable is gone when the copy runs; the next call of a function writes to that place.
__attribute__((noinline)) void send_local(int* to) {
  volatile int local[count];
  for (std::size_t i = 0; i < count; ++i) local[i] = 3;
  EXPECT_EQ(send(to, const_cast<const int*>(local)), cudaSuccess);
}
__attribute__((noinline)) void overwrite_stack() {
  volatile char other[4096];
  for (volatile char& byte : other) byte = 1;
}

struct Case {
  const char* name;
  std::function<void(int* to)> run;  // up to 8 rows of `count` numbers
};
void PrintTo(const Case& tested, std::ostream* out) { *out << tested.name; }

const Case mistakes[] = {
    {"ChangedAfterTheCall",
     [](int* to) {
       static std::vector<int> source;
       source.assign(count, 1);
       EXPECT_EQ(send(to, source.data()), cudaSuccess);
       source[count - 1] = 2;
     }},
    {"FreedAfterTheCall",
     [](int* to) {
       const std::vector<int> source(count, 1);
       EXPECT_EQ(send(to, source.data()), cudaSuccess);
     }},
    {"UnmappedAfterTheCall",
     [](int* to) {
       void* const source = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
       ASSERT_NE(source, MAP_FAILED);
       EXPECT_EQ(send(to, static_cast<const int*>(source)), cudaSuccess);
       EXPECT_EQ(munmap(source, bytes), 0);
     }},
    {"LocalOfAFunctionThatReturned",
     [](int* to) {
       send_local(to);
       overwrite_stack();
     }},
    {"OneBufferForTwoPieces",
     [](int* to) {
       static std::vector<int> piece;
       for (int number = 0; number < 2; ++number) {
         piece.assign(count, number);
         EXPECT_EQ(send(to + static_cast<std::size_t>(number) * count, piece.data()), cudaSuccess);
       }
     }},
    {"ARowOfAMatrix",
     [](int* to) {
       static std::vector<int> rows;
       rows.assign(8 * 2 * count, 1);
       EXPECT_EQ(
           cudaMemcpy2DAsync(to, bytes, rows.data(), 2 * bytes, bytes, 8, cudaMemcpyHostToDevice, nullptr),
           cudaSuccess);
       rows[7 * 2 * count + 5] = 9;
     }},
    {"AWaitForAnotherStream",
     [](int* to) {
       static std::vector<int> source;
       source.assign(count, 1);
       cudaStream_t other = nullptr;
       EXPECT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
       EXPECT_EQ(send(to, source.data()), cudaSuccess);
       EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
       source[0] = 2;
       EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
     }},
};

const Case correct[] = {
    {"ChangedAfterAWait",
     [](int* to) {
       std::vector<int> source(count, 1);
       EXPECT_EQ(send(to, source.data()), cudaSuccess);
       EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
       source[0] = 2;
     }},
    {"BetweenTheRowsOfAMatrix",
     [](int* to) {
       static std::vector<int> rows;
       rows.assign(8 * 2 * count, 1);
       EXPECT_EQ(
           cudaMemcpy2DAsync(to, bytes, rows.data(), 2 * bytes, bytes, 8, cudaMemcpyHostToDevice, nullptr),
           cudaSuccess);
       rows[count] = 9;
     }},
    {"ACopyThatIsNotAsynchronous",
     [](int* to) {
       std::vector<int> source(count, 1);
       EXPECT_EQ(cudaMemcpy(to, source.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
       source[0] = 2;
     }},
    {"OnTheDevice",
     [](int* to) {
       EXPECT_EQ(cudaMemsetAsync(to, 0, 2 * bytes, nullptr), cudaSuccess);
       EXPECT_EQ(cudaMemcpyAsync(to, to + count, bytes, cudaMemcpyDeviceToDevice, nullptr), cudaSuccess);
       EXPECT_EQ(cudaMemsetAsync(to + count, 1, bytes, nullptr), cudaSuccess);
     }},
    // Pinned memory is read when the copy runs in either mode: that it must not change is found by wrong
    // results.
    {"PinnedMemory",
     [](int* to) {
       void* pinned = nullptr;
       EXPECT_EQ(cudaMallocHost(&pinned, bytes), cudaSuccess);
       std::memset(pinned, 0, bytes);
       EXPECT_EQ(send(to, static_cast<const int*>(pinned)), cudaSuccess);
       std::memset(pinned, 1, bytes);
       EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
     }},
};

class LateCopies : public testing::TestWithParam<Case> {
 protected:
  ~LateCopies() override { options().late_copies = before_; }

  // The report after the case has run.
  std::string report_of(bool late) {
    options().late_copies = late;
    const DeviceArray<int> to(std::vector<int>(8 * count));
    GetParam().run(to.data());
    static_cast<void>(cudaDeviceSynchronize());
    return take_report();
  }

 private:
  const bool before_ = options().late_copies;
};

class LateCopyMistakes : public LateCopies {};
class LateCopyUses : public LateCopies {};

TEST_P(LateCopyMistakes, AreReported) {
  EXPECT_EQ(report_of(false), "") << "a GPU may hide it, and so does the emulated device by default";
  EXPECT_NE(report_of(true).find("the pageable source of a copy of"), std::string::npos);
}

TEST_P(LateCopyUses, AreNotReported) { EXPECT_EQ(report_of(true), ""); }

std::string case_name(const testing::TestParamInfo<Case>& instance) { return instance.param.name; }
INSTANTIATE_TEST_SUITE_P(All, LateCopyMistakes, testing::ValuesIn(mistakes), case_name);
INSTANTIATE_TEST_SUITE_P(All, LateCopyUses, testing::ValuesIn(correct), case_name);

}  // namespace
}  // namespace cuda_emulation

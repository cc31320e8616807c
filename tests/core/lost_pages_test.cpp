// Mapped files that are truncated: an error in operations, and SIGBUS as ever elsewhere.
#include "core/lost_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <numeric>
#include <thread>
#include <vector>

#include "core/parallel.h"
#include "support/error_of.h"

namespace nearwise {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t pages = 8;

// A file of ones in memory.
class Mapping {
 public:
  explicit Mapping(bool is_registered = true) : file_(memfd_create("lost_pages_test", 0)) {
    const std::vector<unsigned char> ones(page, 1);
    for (std::size_t i = 0; i < pages; ++i) EXPECT_EQ(write(file_, ones.data(), page), ssize_t{page});
    data_ = static_cast<const unsigned char*>(mmap(nullptr, bytes(), PROT_READ, MAP_PRIVATE, file_, 0));
    if (!is_registered) return;
    range_ = MappedRange("some/file");
    range_.set(data_, bytes());
  }
  ~Mapping() {
    range_ = {};
    munmap(const_cast<unsigned char*>(data_), bytes());
    close(file_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  void truncate(std::size_t kept_pages) {
    EXPECT_EQ(ftruncate(file_, static_cast<off_t>(kept_pages * page)), 0);
  }
  // A byte of this page.
  int read(std::size_t number) const {
    return static_cast<const volatile unsigned char*>(data_)[number * page + 9];
  }
  const unsigned char* data() const { return data_; }
  static constexpr std::size_t bytes() { return pages * page; }

 private:
  int file_;
  const unsigned char* data_;
  MappedRange range_;
};

void expect_truncated(const Error& error) {
  EXPECT_EQ(error.code(), ErrorCode::corrupt);
  EXPECT_NE(std::string(error.what()).find("read some/file: the file was truncated while in use"),
            std::string::npos)
      << error.what();
}

TEST(LostPages, AreAnErrorInAScope) {
  Mapping mapping;
  Mapping other;
  {
    const LostPagesScope scope;
    mapping.truncate(2);
    EXPECT_EQ(mapping.read(1), 1);
    EXPECT_FALSE(pages_were_lost());
    EXPECT_EQ(mapping.read(5), 0);
    EXPECT_EQ(mapping.read(6), 0);
    EXPECT_EQ(mapping.read(2), 0);  // a second signal
    EXPECT_EQ(mapping.read(0), 1);
    EXPECT_TRUE(pages_were_lost());
    {
      const LostPagesScope inner;
      EXPECT_TRUE(pages_were_lost());
    }
    expect_truncated(support::error_of(check_lost_pages));
    expect_truncated(support::error_of([] { read_mapped([] { return 1; }); }));
  }
  check_lost_pages();
  {
    // A later operation: an error by the address of its input, and only by that.
    const LostPagesScope scope;
    check_lost_pages();
    expect_truncated(support::error_of([&] { check_mapped(mapping.data() + 3, 1); }));
    check_mapped(other.data(), Mapping::bytes());
    check_mapped(mapping.data() + Mapping::bytes(), 1);
    check_mapped(mapping.data() + 3, 0);
  }
  EXPECT_TRUE(any_mapping_is_damaged());
}

TEST(LostPages, AreForgottenWithTheMapping) {
  const unsigned char* data = nullptr;
  {
    Mapping mapping;
    data = mapping.data();
    mapping.truncate(0);
    const LostPagesScope scope;
    EXPECT_EQ(mapping.read(0), 0);
  }
  EXPECT_FALSE(any_mapping_is_damaged());
  check_mapped(data, Mapping::bytes());
}

TEST(LostPages, OfTasksReachTheCaller) {
  for (const int count : {1, 3}) {
    Mapping mapping;
    mapping.truncate(7);
    const Threads threads(count);
    std::atomic<int> sum = 0;
    expect_truncated(
        support::error_of([&] { threads.for_each(pages, [&](std::size_t i) { sum += mapping.read(i); }); }));
    EXPECT_EQ(sum, 7) << count;
    threads.for_each(7, [&](std::size_t i) { sum += mapping.read(i); });
    EXPECT_EQ(sum, 14) << count;
  }
}

// An operation of another thread reads the zeros that the first one got.
TEST(LostPages, AreSeenByAllThatRunAtTheTime) {
  Mapping mapping;
  const LostPagesScope scope;
  EXPECT_EQ(mapping.read(5), 1);
  std::thread([&] {
    const LostPagesScope other;
    mapping.truncate(0);
    EXPECT_EQ(mapping.read(3), 0);
  }).join();
  EXPECT_EQ(mapping.read(5), 0);
  expect_truncated(support::error_of(check_lost_pages));
}

TEST(LostPages, AreSeenInAForkedChild) {
  Mapping mapping;
  mapping.truncate(1);
  const pid_t child = fork();
  if (child == 0) {
    const LostPagesScope scope;
    _exit(mapping.read(0) == 1 && mapping.read(1) == 0 && pages_were_lost() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_FALSE(any_mapping_is_damaged());
}

TEST(LostPages, MappingsComeAndGoMeanwhile) {
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) {
      std::vector<std::unique_ptr<Mapping>> some;
      for (int i = 0; i < 5; ++i) some.push_back(std::make_unique<Mapping>());
    }
  });
  for (int i = 0; i < 200; ++i) {
    Mapping mapping;
    mapping.truncate(3);
    const LostPagesScope scope;
    EXPECT_EQ(mapping.read(3), 0);
    expect_truncated(support::error_of(check_lost_pages));
    expect_truncated(support::error_of([&] { check_mapped(mapping.data(), 1); }));
  }
  stop = true;
  busy.join();
  EXPECT_FALSE(any_mapping_is_damaged());
}

TEST(LostPagesDeathTest, StopTheProcessOutsideOfAScope) {
  Mapping mapping;
  mapping.truncate(1);
  EXPECT_DEATH(mapping.read(4), "");
  // Mappings that are not nearwise's, in a scope.
  Mapping foreign(false);
  foreign.truncate(1);
  const LostPagesScope scope;
  EXPECT_DEATH(foreign.read(4), "");
  EXPECT_EQ(mapping.read(4), 0);
}

void end_with_7(int, siginfo_t*, void*) { _exit(7); }
void end_with_8(int) { _exit(8); }

// A process of its own for each: the handler is installed once.
void read_foreign_page(const struct sigaction& before) {
  sigaction(SIGBUS, &before, nullptr);
  Mapping mapping;
  Mapping foreign(false);
  mapping.truncate(0);
  foreign.truncate(0);
  const LostPagesScope scope;
  if (mapping.read(1) != 0) _exit(1);
  foreign.read(1);
  _exit(2);
}

TEST(LostPagesDeathTest, OthersGoToTheHandlerBefore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  struct sigaction with_information {};
  with_information.sa_sigaction = end_with_7;
  with_information.sa_flags = SA_SIGINFO;
  EXPECT_EXIT(read_foreign_page(with_information), ::testing::ExitedWithCode(7), "");
  struct sigaction plain {};
  plain.sa_handler = end_with_8;
  EXPECT_EXIT(read_foreign_page(plain), ::testing::ExitedWithCode(8), "");
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  EXPECT_EXIT(read_foreign_page(standard), ::testing::KilledBySignal(SIGBUS), "");
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  EXPECT_EXIT(read_foreign_page(ignored), ::testing::KilledBySignal(SIGBUS), "");
}

void be_sent_a_signal(void (*before)(int), int expected) {
  struct sigaction action {};
  action.sa_handler = before;
  sigaction(SIGBUS, &action, nullptr);
  const Mapping mapping;
  const LostPagesScope scope;
  raise(SIGBUS);
  _exit(expected);
}

TEST(LostPagesDeathTest, SignalsThatAreSentDoWhatTheyDid) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(be_sent_a_signal(SIG_IGN, 3), ::testing::ExitedWithCode(3), "");
  EXPECT_EXIT(be_sent_a_signal(SIG_DFL, 3), ::testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(be_sent_a_signal(end_with_8, 3), ::testing::ExitedWithCode(8), "");
}

}  // namespace
}  // namespace nearwise

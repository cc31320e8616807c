// Runs an operation with the i-th system call on files, or the i-th allocation, failing, for i = 1, 2, ...
// until it succeeds without a fault.
//
// After every failure: the error is clean, what was there before is unchanged, nothing is left behind, and
// the next attempt succeeds.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <new>
#include <optional>
#include <string>

#include "faults/failing_allocations.h"
#include "io/failing_calls.h"
#include "io/temporary_folder.h"
#include "nearwise/error.h"

namespace nearwise::faults {

// An operation under test.
struct Attempt {
  std::string name;
  std::function<void()> prepare = [] {};        // before each run: inputs as they were at first
  std::function<void()> run = {};               // the operation; keeps its result
  std::function<void()> expect_before = [] {};  // holds after a failure
  std::function<void()> expect_result = {};     // holds after a success
};

enum class Fault : std::uint8_t { file_call, allocation, exhaustion };

inline std::string name(Fault fault) {
  switch (fault) {
    case Fault::file_call: return "file call";
    case Fault::allocation: return "allocation";
    case Fault::exhaustion: break;
  }
  return "exhaustion";
}

// Files of a folder that an unfinished write leaves behind.
inline void expect_no_temporaries(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    EXPECT_FALSE(entry.path().filename().string().ends_with(".tmp")) << entry.path();
}

// Of an operation that reads or writes files in this folder.
class FaultKit {
 public:
  explicit FaultKit(const std::filesystem::path& folder) : folder_(folder) {}

  // Between two faults that are tried: 1 for every fault. Larger for operations with many calls: then faults
  // are tried that are at most this factor apart, and the first 20.
  FaultKit& apart(double factor) {
    factor_ = factor;
    return *this;
  }

  // Returns the number of faults.
  int run(const Attempt& attempt, Fault fault) const {
    int failures = 0;
    for (int call = 1;; call = next(call)) {
      SCOPED_TRACE(attempt.name + ", " + name(fault) + " " + std::to_string(call));
      attempt.prepare();
      bool has_thrown = false;
      const bool has_failed = run_once(attempt, fault, call, has_thrown);
      EXPECT_TRUE(has_failed || !has_thrown);
      expect_no_temporaries(folder_);
      if (has_thrown) {
        ++failures;
        attempt.expect_before();
        attempt.run();
      }
      attempt.expect_result();
      if (!has_failed || ::testing::Test::HasFailure()) return failures;
    }
  }

  // Returns the number of faults of file calls.
  int run_all(const Attempt& attempt) const {
    run(attempt, Fault::allocation);
    run(attempt, Fault::exhaustion);
    return run(attempt, Fault::file_call);
  }

 private:
  int next(int call) const {
    return call < 20 ? call + 1 : std::max(call + 1, static_cast<int>(call * factor_));
  }

  bool run_once(const Attempt& attempt, Fault fault, int call, bool& has_thrown) const {
    if (fault == Fault::file_call) {
      const testing_io::FailingCalls faults({.fail_call = call, .error = EIO});
      try {
        attempt.run();
      } catch (const Error& error) {
        has_thrown = true;
        expect_file_error(error, faults.failed_call());
      } catch (const std::exception& error) {
        ADD_FAILURE() << "not an Error: " << error.what();
      }
      return faults.failed();
    }
    bool has_failed = false;
    std::optional<ErrorCode> code;
    {
      const FailingAllocations faults({.fail_call = call, .fail_all_after = fault == Fault::exhaustion});
      try {
        attempt.run();
      } catch (const Error& error) {
        has_thrown = true;
        code = error.code();
      } catch (const std::bad_alloc&) {
        has_thrown = true;
      }
      has_failed = faults.failed();
    }
    EXPECT_TRUE(!code || *code == ErrorCode::out_of_memory) << nearwise::name(*code);
    return has_failed;
  }

  void expect_file_error(const Error& error, const std::string& call) const {
    const std::string text = error.what();
    EXPECT_TRUE(error.code() == ErrorCode::io || error.code() == ErrorCode::cannot_create)
        << call << ": " << nearwise::name(error.code()) << ": " << text;
    // The folder, something in it, or one that it lies in.
    bool names = false;
    for (std::filesystem::path outer = folder_; outer.has_relative_path(); outer = outer.parent_path())
      names = names || text.find(outer.string()) != std::string::npos;
    EXPECT_TRUE(names || text.find(" /:") != std::string::npos) << call << ": " << text;
    EXPECT_NE(text.find("Input/output error"), std::string::npos) << call << ": " << text;
  }

  std::filesystem::path folder_;
  double factor_ = 1;
};

}  // namespace nearwise::faults

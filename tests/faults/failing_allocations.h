// Allocations of at least 1 KiB that fail on command: operator new of this program
// (failing_allocations.cpp), and the memory of buffers and matrices.
#pragma once

namespace nearwise::faults {

// While it lives, counts the allocations of all threads; the i-th fails. One at a time.
class FailingAllocations {
 public:
  struct Plan {
    int fail_call = 0;            // 1: the first; 0: none
    bool fail_all_after = false;  // the machine's memory is used up
  };

  explicit FailingAllocations(const Plan& plan);
  ~FailingAllocations();
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;

  int calls() const;
  bool failed() const;
};

}  // namespace nearwise::faults

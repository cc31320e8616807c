// Sorts 64-bit keys with Highway's vectorized quicksort. Not thread-safe.
//
// Highway selects the instruction set of its sort once per process. The context's choice would only change
// the speed, since sorting distinct keys has a unique result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace nearwise::cpu {

class KeySorter {
 public:
  KeySorter();
  ~KeySorter();
  KeySorter(KeySorter&&) noexcept;
  KeySorter& operator=(KeySorter&&) noexcept;

  void sort(std::int64_t* keys, std::size_t count) const;

 private:
  class Sorter;
  std::unique_ptr<Sorter> sorter_;
};

}  // namespace nearwise::cpu

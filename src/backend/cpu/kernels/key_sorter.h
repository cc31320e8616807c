// Sorts 64-bit keys in vectors (Highway's quicksort). Not shared by threads.
//
// Highway picks the instruction set of its sort by itself, once per process: a sort of distinct keys has one result
// only, so that a context's own choice could change nothing but the speed.
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

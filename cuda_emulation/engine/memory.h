// The memory that kernels may use, and what the checker remembers of each of its 4-byte cells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda_emulation/engine/order.h"

namespace cuda_emulation {

// The last write and two of the reads since. `bytes` has a bit for each byte of the cell.
struct Access {
  Moment moment;
  std::uint8_t bytes;
  bool atomic;
};

struct Cell {
  unsigned launch;  // accesses of earlier launches are ordered before this one
  Access write;
  Access read[2];
  std::uint8_t initialised;  // a bit for each byte
};

inline constexpr int shared_memory = -1;

struct Region {
  const char* begin = nullptr;
  std::size_t size = 0;
  int device = shared_memory;
  std::vector<Cell> cells = {};  // made at the first checked access

  bool contains(const char* address) const { return address >= begin && address < begin + size; }
  Cell& cell(std::size_t index) {
    if (cells.empty()) cells.resize(size / 4 + 2);
    return cells[index];
  }
};

// Live device memory, as kernels and copies see it in the order of the streams.
void add_region(const void* begin, std::size_t size, int device);
void remove_region(const void* begin);
Region* find_region(const char* address);

// The host, a copy or a library has written here.
void mark_initialised(const void* begin, std::size_t size);

// For work that is not a kernel (copies, cuBLAS): throws Failure unless [begin, begin + size) lies in live memory of
// one allocation; and, for a read in the check build, unless all of it was written.
enum class Use : std::uint8_t { read, write };
void require_region(const void* begin, std::size_t size, Use use, const char* what);

}  // namespace cuda_emulation

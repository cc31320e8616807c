// Memory that kernels may access, and the access history of each of its 4-byte cells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda_emulation/engine/order.h"

namespace cuda_emulation {

// One recorded access. `bytes` has a bit for each byte of the cell.
struct Access {
  Timestamp timestamp;
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
  std::vector<Cell> cells = {};  // allocated at the first checked access

  bool contains(const char* address) const { return address >= begin && address < begin + size; }
  Cell& cell(std::size_t index) {
    if (cells.empty()) cells.resize(size / 4 + 2);
    return cells[index];
  }
};

// Live device memory, in stream order as kernels and copies see it.
void add_region(const void* begin, std::size_t size, int device);
void remove_region(const void* begin);
Region* find_region(const char* address);

// Records a write by the host, a copy or a library.
void mark_initialised(const void* begin, std::size_t size);

// For copies and cuBLAS: throws Failure unless [begin, begin + size) is inside one live allocation and, for a
// read in the check build, initialised.
enum class Use : std::uint8_t { read, write };
void require_region(const void* begin, std::size_t size, Use use, const char* what);

}  // namespace cuda_emulation

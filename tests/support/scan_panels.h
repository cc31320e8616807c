// What tests of scans share: rows packed for a kernel, and an owner of candidate lists that keeps all it is
// given.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu {

inline PackRowsKernels::Function pack_function(InstructionSet set, Encoding encoding, ElementType type) {
  return pack_rows_kernels(set).pack[static_cast<std::size_t>(encoding)][static_cast<std::size_t>(type)];
}

struct Owner {
  std::vector<std::set<std::uint32_t>> found;
  CandidateLists lists;

  // Empties the list, so that every passing row is seen once.
  static void make_room(void* self, std::size_t query) {
    auto& owner = *static_cast<Owner*>(self);
    for (std::uint32_t i = 0; i < owner.lists.counts[query]; ++i)
      EXPECT_TRUE(owner.found[query].insert(owner.lists.rows[query * owner.lists.stride + i]).second);
    owner.lists.counts[query] = 0;
  }
};

// Rows packed for a kernel, panel by panel.
struct Panels {
  std::vector<std::byte> bytes;
  std::vector<PackedRow> packed;
};

inline Panels pack_panels(InstructionSet set, const ScanKernel& kernel, bool queries,
                          const std::vector<std::byte>& rows, ElementType type, std::size_t count,
                          std::size_t dim) {
  const std::size_t width = queries ? kernel.query_width : kernel.base_width;
  const std::size_t row_bytes = encoded_row_bytes(kernel, dim);
  const std::size_t panels = (count + width - 1) / width;
  const std::size_t stride = rows.size() / count;
  Panels out = {std::vector<std::byte>(panels * width * row_bytes), std::vector<PackedRow>(panels * width)};
  std::vector<std::byte> scratch(pack_scratch_bytes(dim, row_bytes));
  const auto pack = pack_function(set, queries ? kernel.query_encoding : kernel.base_encoding, type);
  for (std::size_t p = 0; p < panels; ++p) {
    const std::size_t here = std::min(width, count - p * width);
    EXPECT_EQ(pack({.rows = rows.data() + p * width * stride,
                    .stride_bytes = stride,
                    .count = here,
                    .dim = dim,
                    .width = width,
                    .unit_bytes = queries ? kernel.query_unit_bytes : kernel.base_unit_bytes,
                    .row_bytes = row_bytes,
                    .panel = out.bytes.data() + p * width * row_bytes,
                    .packed = out.packed.data() + p * width,
                    .scratch = scratch.data()}),
              here);
  }
  return out;
}

template <typename T>
std::vector<std::byte> as_bytes(const std::vector<int>& values) {
  std::vector<T> typed(values.begin(), values.end());
  std::vector<std::byte> out(typed.size() * sizeof(T));
  std::memcpy(out.data(), typed.data(), out.size());
  return out;
}

inline std::vector<std::byte> encode(ElementType type, const std::vector<int>& values) {
  switch (type) {
    case ElementType::u8: return as_bytes<std::uint8_t>(values);
    case ElementType::i8: return as_bytes<std::int8_t>(values);
    default: return as_bytes<float>(values);
  }
}

}  // namespace nearwise::cpu

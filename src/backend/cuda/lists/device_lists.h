// The lists of an index on a device, copied as a whole: codes or vectors in the layout that is scanned, ids,
// centroids, norms, codebooks, and the kept vectors if they are asked for. Every list begins at a multiple of
// 32 rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/kernels/lists/located_rows.h"
#include "backend/cuda/lists/code_bound.h"
#include "backend/cuda/rows/device_codebooks.h"
#include "backend/ops.h"
#include "core/math/score_bound.h"

namespace nearwise::gpu {

inline constexpr const char* prepare_lists_name = "Ivf.to";  // in error messages

class DeviceLists : public PreparedLists {
 public:
  // Complete when it returns. Throws Error(out_of_memory) if it does not fit the budget or the device.
  DeviceLists(const CudaStream& stream, const PrepareListsArgs& args);

  bool has_vectors() const override { return vector_bytes != 0; }
  std::uint64_t bytes() const override { return bytes_; }

  std::size_t lists() const { return centroid_rows; }
  // Rows that a query with this many probes scans, at most.
  std::size_t most_columns(std::size_t probes) const { return most_columns_[probes]; }

  // What never changes.
  Metric metric;
  ElementType type;  // of decoded vectors
  std::size_t dim = 0;
  std::size_t code_bytes = 0;
  bool is_flat = false;
  bool scans_codes = false;
  unsigned bits = 8;
  std::size_t parts = 0;
  std::size_t centroid_rows = 0;
  std::size_t rows = 0;          // with padding
  std::uint32_t longest = 0;     // rows of a list
  std::size_t packed_width = 0;  // of packed rows; 0: codes are scanned
  std::size_t vector_bytes = 0;  // of a vector to re-rank by; 0: none
  ElementType vector_type = ElementType::f32;
  std::vector<float> host_centre;  // euclidean metrics
  std::optional<CodeBound> bound;  // of codes
  Lengths longest_row;             // of packed rows
  DeviceBuffer<float> centre;
  DeviceBuffer<float> centroids;           // [lists, dim]
  DeviceBuffer<std::uint32_t> first_rows;  // [lists]
  DeviceBuffer<std::uint32_t> sizes;       // [lists]
  DeviceBuffer<Id> ids;                    // [rows]
  DeviceBuffer<std::byte> raw;             // [rows, code_bytes], flat
  DeviceBuffer<std::uint32_t> interleaved;
  DeviceBuffer<float> half_norms;
  DeviceBuffer<float> packed;  // [rows, packed_width]
  DeviceBuffer<std::byte> vectors;
  CodebooksOnDevice books;

 private:
  std::vector<std::size_t> most_columns_;  // [lists + 1]
  std::uint64_t bytes_ = 0;
};

}  // namespace nearwise::gpu

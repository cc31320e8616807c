// The CUDA backend as a shared library of its own: what it exports, and what it takes of the library that
// loads it (docs/adr/0020-the-cuda-backend-is-loaded-at-run-time.md).
//
// The plugin contains the backend alone. It calls functions of src/core, src/codes and src/backend through
// pointers (BaseFunctions), so that both sides run the same code on the same state wherever the library lies:
// in a program, in libnearwise.so, or in a Python module whose symbols no other library sees. Both sides have
// the same types, because a plugin of another build is refused before any of its functions but the first is
// called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "backend/cuda_backend.h"
#include "codes/additive_codewords.h"
#include "codes/kept_vectors.h"
#include "codes/list_codec.h"
#include "codes/scalar_codec.h"
#include "core/math/score_bound.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "core/progress.h"

namespace nearwise {

// Version and a hash of all sources (cmake/build_id.cmake).
const char* build_id();

// Functions of the library that the backend calls, named as they are.
struct BaseFunctions {
  void (*assertion_failed)(const char* expression, const char* file, int line) noexcept;
  void (*check_lost_pages)();
  void (*stop_cancelled)();  // CancelFlag::stop
  void (*refuse_row)(RowsRole role, std::size_t row);
  std::string (*format_bytes)(std::uint64_t bytes);
  std::size_t (*element_size)(ElementType type);
  std::string (*place_name)(Place place);
  Place (Context::*place)() const;
  void (ProgressMeter::*add_progress)(std::uint64_t units);
  void (Threads::*for_each)(std::size_t tasks, const std::function<void(std::size_t)>& body) const;

  void (MemoryBudget::*take)(std::uint64_t bytes);
  void (MemoryBudget::*give_back)(std::uint64_t bytes) noexcept;
  std::uint64_t (MemoryBudget::*available)() const;
  std::size_t (*buffer_bytes)(std::size_t size, std::size_t element_bytes);
  BufferMemory (*allocate_buffer)(const MemoryBudget& budget, std::size_t bytes);
  void (*free_buffer)(const BufferMemory& memory) noexcept;

  ScoreBound (*score_bound)(Metric metric, Products products, std::size_t dim);
  bool (*score_bound_holds_for)(const Lengths& query, const Lengths& row);
  double (ScoreBound::*limit_from_score)(const Lengths& query, const Lengths& row, float score,
                                         float slack) const;

  AdditiveCodewords (*additive_codewords)(MemoryBudget& budget, std::size_t dim, std::size_t count,
                                          std::span<const float> codewords);
  std::uint64_t (*additive_codewords_bytes)(std::size_t dim, std::size_t count);
  std::size_t (*additive_codewords_width)(std::size_t dim);
  std::size_t (*additive_pair_entries)(std::size_t count);
  const std::byte* (KeptVectors::*read_kept)(const std::byte* kept, std::byte* scratch) const;
  void (ScalarCodec::*encode_query)(const RowsView& queries, std::size_t query, double* scratch,
                                    std::int16_t* byte_query, std::int16_t* nibble_query) const;
  void (*decode_rows)(const ListCodec& codec, const ListView& view, std::size_t list, std::size_t first,
                      std::size_t count, std::byte* out);
};

// What the plugin's one exported function returns. The id comes first in every build: a library that reads
// another one than its own reads nothing else.
struct PluginEntry {
  const char* build_id;
  // Once, before anything else is called. `base` lives as long as the process.
  const CudaBackend& (*start)(const BaseFunctions& base);
};
using PluginFunction = const PluginEntry* (*)();
inline constexpr const char* plugin_function_name = "nearwise_cuda_backend";

const BaseFunctions& base_functions();

// The environment variable that names the file of the backend.
inline constexpr const char* cuda_variable = "NEARWISE_CUDA_BACKEND";

// Loads the backend from the file that the environment variable names, else from the file that the package
// names, else from libnearwise_cuda.so where the dynamic linker looks for libraries. Empty: it names none.
CudaLibrary load_cuda_library(const std::string& variable, const std::string& package);

}  // namespace nearwise

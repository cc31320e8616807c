// Encoded vectors of a graph under construction, in the order of their places, and their neighbor lists.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/rows/prepared_rows.h"
#include "backend/cpu/stream.h"
#include "backend/ops.h"
#include "core/math/score_bound.h"
#include "core/memory.h"

namespace nearwise::cpu {

class JoinRows : public JoinState {
 public:
  JoinRows(CpuStream& cpu, const ScanKernel& scan, const StartJoinArgs& args);

  static std::uint64_t bytes_per_row(const ScanKernel& scan, std::size_t dim);

  const std::byte* encoded(std::uint32_t place) const { return encoded_.data() + place * row_bytes; }
  // Score biases of base vectors, for floating-point or integer products.
  float bias(std::uint32_t place) const { return biases_[place]; }
  std::int32_t integer_bias_of(std::uint32_t place) const { return integer_biases_[place]; }
  const Lengths& lengths(std::uint32_t place) const { return lengths_[place]; }

  // Vectors with a larger score cannot enter the list. Readable without the mutex, since it only decreases.
  float cutoff(std::uint32_t place) const {
    return std::atomic_ref(cutoffs_[place]).load(std::memory_order_relaxed);
  }
  // Key of the reported distance; requires exact_scores().
  float key_from_score(std::uint32_t place, float score) const;
  std::span<NeighborEntry> list(std::uint32_t place) const {
    return args_.lists.subspan(place * args_.degree, args_.degree);
  }
  // Mutex of a place's list.
  std::mutex& mutex(std::uint32_t place) { return mutexes_[place % mutexes_.size()]; }
  // Inserts the entry unless it is a duplicate or worse than a full list. The caller holds the mutex.
  void insert(std::uint32_t place, NeighborEntry entry) const;
  // Lowers the cutoff according to the list's worst entry.
  void lower_cutoff(std::uint32_t place) const;

  std::uint32_t row_at(std::uint32_t place) const { return args_.order[place]; }
  const StartJoinArgs& args() const { return args_; }
  const ScoreBound& bound() const { return bound_; }
  const Lengths& longest() const { return longest_; }
  bool scores_hold() const { return ScoreBound::holds_for(longest_, longest_); }
  // Whether scores are integers that f32 represents exactly.
  bool exact_scores() const { return exact_scores_; }

  const ScanKernel scan;
  const std::size_t row_bytes;  // encoded

 private:
  void encode(CpuStream& cpu, std::size_t first, std::size_t end);

  const StartJoinArgs args_;
  const ScoreBound bound_;
  Buffer<std::byte> encoded_;  // [rows, row_bytes] in the base encoding
  Buffer<float> biases_;
  Buffer<std::int32_t> integer_biases_;
  Buffer<Lengths> lengths_;
  mutable Buffer<float> cutoffs_;
  Lengths longest_;
  bool exact_scores_ = false;
  std::mutex longest_mutex_;
  std::array<std::mutex, 4096> mutexes_;
};

}  // namespace nearwise::cpu

// Iterated local search for the additive code of one row by a warp. Lane b has the code of codebook b. Lane l
// has the candidates 8 l to 8 l + 7 of the codebook whose code is being chosen: 16 bytes of every table row.
#pragma once

#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/kernels/codes/search_codes.h"
#include "backend/cuda/warp/lane_network.cuh"
#include "codes/additive_codewords.h"
#include "codes/additive_draws.h"

namespace nearwise::gpu {

// Sums of a lane's candidates: 16-bit entries added in the given order, saturating like the CPU's. A bias of
// 2^15 keeps sums that have not saturated in the unsigned 16-bit range.
class CandidateSums {
 public:
  static constexpr int count = 8;  // per lane
  static constexpr int bias = 1 << 15;
  static constexpr int largest = (1 << 16) - 1;
  static_assert(count * warp_lanes == additive_codebook_size);

  __device__ __forceinline__ explicit CandidateSums(const uint4& own) {
#pragma unroll
    for (int i = 0; i < count; ++i) sums_[i] = entry(own, i) + bias;
  }

  // Adds without saturation; left_range() then tells whether any sum overflowed.
  __device__ __forceinline__ void add(const uint4& entries) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      sums_[i] += entry(entries, i);
      seen_ |= sums_[i];
    }
  }
  __device__ __forceinline__ bool left_range() const { return (seen_ & ~largest) != 0; }

  __device__ __forceinline__ void add_saturating(const uint4& entries) {
#pragma unroll
    for (int i = 0; i < count; ++i) sums_[i] = min(max(sums_[i] + entry(entries, i), 0), largest);
  }

  // The candidate with the smallest sum of the whole warp, the lower index on a tie. Called by all lanes.
  __device__ __forceinline__ std::uint32_t argmin(int lane) const {
    int best = sums_[0] * static_cast<int>(additive_codebook_size);
#pragma unroll
    for (int i = 1; i < count; ++i) best = min(best, sums_[i] * static_cast<int>(additive_codebook_size) + i);
    best += lane * count;
#pragma unroll
    for (int step = warp_lanes / 2; step > 0; step /= 2)
      best = min(best, __shfl_xor_sync(whole_warp, best, step));
    return static_cast<std::uint32_t>(best) % additive_codebook_size;
  }

 private:
  __device__ __forceinline__ static int entry(const uint4& entries, int i) {
    const std::uint32_t word = i < 2 ? entries.x : i < 4 ? entries.y : i < 6 ? entries.z : entries.w;
    return i % 2 == 0 ? static_cast<std::int16_t>(word) : static_cast<int>(word) >> 16;
  }

  int sums_[count];
  int seen_ = 0;
};

// All members are called by all lanes.
class CodeSearch {
 public:
  // own: shared memory [books, lanes] for the row's own entries; each lane reads only what it wrote.
  __device__ __forceinline__ CodeSearch(const SearchCodesTask& task, std::uint32_t row, uint4* own)
      : task_(task), row_(row), lane_(static_cast<int>(threadIdx.x) % warp_lanes), own_(own + lane_) {
    const auto* const entries =
        reinterpret_cast<const uint4*>(task.own) + std::size_t{row} * task.books * warp_lanes + lane_;
    for (std::uint32_t book = 0; book < task.books; ++book)
      own_[book * warp_lanes] = __ldg(entries + book * warp_lanes);
  }

  __device__ __forceinline__ void load() {
    if (has_code()) code_ = task_.codes[code_index()];
  }
  __device__ __forceinline__ void store() {
    if (has_code()) task_.codes[code_index()] = static_cast<std::uint8_t>(best_);
  }

  __device__ __forceinline__ void perturb(std::uint32_t iteration) {
    const auto lane = static_cast<std::uint32_t>(lane_);
    const PhiloxBlock draws = perturbation_draws(task_.keys[row_], task_.seed, iteration, lane / 4);
    const std::uint32_t draw =
        lane % 4 < 2 ? (lane % 2 == 0 ? draws[0] : draws[1]) : (lane % 2 == 0 ? draws[2] : draws[3]);
    std::uint32_t needed = task_.perturbed;
    for (std::uint32_t book = 0; book < task_.books && needed != 0; ++book) {
      if (!is_perturbed(__shfl_sync(whole_warp, draw, static_cast<int>(book)), task_.books - book, needed))
        continue;
      if (lane == book) code_ = draw % additive_codebook_size;
      --needed;
    }
  }

  // Coordinate descent: chooses one code after the other until none changes. The start is a residual
  // quantizer: each codebook once, for the residual of the codebooks before it.
  __device__ __forceinline__ void descend(bool is_start) {
    const std::uint32_t rounds = is_start ? 1 : task_.rounds;
    const std::uint32_t all = 0xFFFFFFFFU >> (warp_lanes - task_.books);
    std::uint32_t settled = 0;  // bit b: code b was chosen after the last change of another code
    for (std::uint32_t round = 0; round < rounds && settled != all; ++round)
      for (std::uint32_t book = 0; book < task_.books; ++book) {
        const std::uint32_t bit = 1U << book;
        if ((settled & bit) == 0) settled = choose(book, is_start ? book : task_.books) ? bit : settled | bit;
      }
  }

  // Accepts a better code; otherwise restores the best.
  __device__ __forceinline__ void accept(bool always) {
    const float new_cost = cost();
    if (always || new_cost < best_cost_) {
      best_cost_ = new_cost;
      best_ = code_;
    } else {
      code_ = best_;
    }
  }

 private:
  __device__ __forceinline__ bool has_code() const { return static_cast<std::uint32_t>(lane_) < task_.books; }
  __device__ __forceinline__ std::size_t code_index() const {
    return std::size_t{row_} * task_.books + lane_;
  }

  // Chooses the code of one codebook, given those of codebooks [0, end). Returns whether it changed.
  __device__ __forceinline__ bool choose(std::uint32_t book, std::uint32_t end) {
    const auto lane = static_cast<std::uint32_t>(lane_);
    // Table row that this lane's code selects for the candidates of the codebook.
    const std::uint32_t slot = book * (task_.books - 1) + lane - (lane < book ? 0 : 1);
    const std::uint32_t table_row = (slot * additive_codebook_size + code_) * warp_lanes;
    const std::uint32_t others = end - (book < end ? 1 : 0);
    const auto* const pairs = reinterpret_cast<const uint4*>(task_.pairs) + lane_;
    const auto row_of = [&](std::uint32_t i) {
      return __ldg(pairs + __shfl_sync(whole_warp, table_row, static_cast<int>(i < book ? i : i + 1)));
    };
    const uint4 own = own_[book * warp_lanes];
    CandidateSums sums(own);
#pragma unroll 4
    for (std::uint32_t i = 0; i < others; ++i) sums.add(row_of(i));
    if (__any_sync(whole_warp, sums.left_range() ? 1 : 0) != 0) {
      sums = CandidateSums(own);
#pragma unroll 1
      for (std::uint32_t i = 0; i < others; ++i) sums.add_saturating(row_of(i));
    }
    const std::uint32_t codeword = sums.argmin(lane_);
    const bool changed = __shfl_sync(whole_warp, code_, static_cast<int>(book)) != codeword;
    if (lane == book) code_ = codeword;
    return changed;
  }

  // Squared distance of the row from the sum of its codewords: 16 partial sums, reduced pairwise in the CPU's
  // order. The upper half-warp has the elements that the lower half adds next.
  __device__ __forceinline__ float cost() const {
    constexpr int half = warp_lanes / 2;
    static_assert(half == cost_lanes);
    const float* const values = task_.values + std::size_t{row_} * task_.width;
    float sum = 0;
    for (std::uint32_t first = 0; first < task_.width; first += warp_lanes) {
      const std::uint32_t i = first + static_cast<std::uint32_t>(lane_);
      const bool in_range = i < task_.width;
      float difference = in_range ? __ldg(values + i) : 0.0F;
      for (std::uint32_t book = 0; book < task_.books; ++book) {
        const std::uint32_t codeword =
            book * additive_codebook_size + __shfl_sync(whole_warp, code_, static_cast<int>(book));
        if (in_range) difference -= __ldg(task_.codewords + std::size_t{codeword} * task_.width + i);
      }
      const float square = difference * difference;
      sum += square;
      sum += __shfl_down_sync(whole_warp, square, half);
    }
#pragma unroll
    for (int step = half / 2; step > 0; step /= 2) sum += __shfl_down_sync(whole_warp, sum, step);
    return __shfl_sync(whole_warp, sum, 0);
  }

  const SearchCodesTask& task_;
  const std::uint32_t row_;
  const int lane_;
  uint4* const own_;
  std::uint32_t code_ = 0;
  std::uint32_t best_ = 0;
  float best_cost_ = 0;
};

}  // namespace nearwise::gpu

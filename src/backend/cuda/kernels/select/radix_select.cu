// Radix selection. A key is a sequence of 32-bit words, most significant first: image, tie-break, position.
// Digit by digit the block counts the elements that match the k-th best so far and finds its next digit; it
// stops when all matching elements belong to the result. Distinct values take four rounds, and ids are read
// only for equal values.
#include "backend/cuda/kernels/select/radix_select.h"

#include <cstdint>

#include "backend/cuda/block/digit_search.cuh"
#include "backend/cuda/device/gpu.h"
#include "backend/cuda/tuning/selection.h"
#include "backend/cuda/warp/row_part.cuh"
#include "backend/cuda/warp/selection_key.cuh"

namespace nearwise::gpu {
namespace {

template <Ties ties>
inline constexpr int key_words = ties == Ties::positions    ? 2
                                 : ties == Ties::narrow_ids ? 3
                                                            : 4;

// Words compare as unsigned integers.
template <Ties ties>
__device__ __forceinline__ std::uint32_t key_word(int word, std::int32_t image, std::uint32_t position,
                                                  const DeviceRowIds& ids) {
  constexpr std::uint32_t sign = 0x80000000U;
  if (word == 0) return static_cast<std::uint32_t>(image) ^ sign;
  if (word == key_words<ties> - 1) return position;
  if constexpr (ties == Ties::narrow_ids) return ids.narrow[position];
  if constexpr (ties == Ties::wide_ids) {
    const auto id = static_cast<std::uint64_t>(ids.wide[position]);
    return word == 1 ? static_cast<std::uint32_t>(id >> 32) ^ sign : static_cast<std::uint32_t>(id);
  }
  return 0;
}

// Known prefix of the k-th best key: whole words and the upper bits of one more.
struct Prefix {
  std::uint32_t words[4];
  int word;   // the partly known word
  int shift;  // its unknown lower bits
};

enum class Comparison { below, equal, above };

template <Ties ties>
__device__ __forceinline__ Comparison compare(const Prefix& prefix, int word, int shift, std::int32_t image,
                                              std::uint32_t position, const DeviceRowIds& ids) {
  for (int i = 0; i <= word; ++i) {
    // Nothing of this word is known: a shift by 32 is undefined.
    if (i == word && shift == 32) break;
    const std::uint32_t own = key_word<ties>(i, image, position, ids) >> (i == word ? shift : 0);
    const std::uint32_t known = prefix.words[i] >> (i == word ? shift : 0);
    if (own != known) return own < known ? Comparison::below : Comparison::above;
  }
  return Comparison::equal;
}

template <Ties ties>
__global__ void __launch_bounds__(tuning::radix_threads)
    radix_select(SelectionTask task, std::int64_t* entries) {
  __shared__ std::uint32_t counts[digits];
  __shared__ Prefix prefix;
  __shared__ std::uint32_t rank;   // of the k-th best among the elements that match the prefix
  __shared__ std::uint32_t equal;  // number of elements that match the prefix
  __shared__ std::uint32_t written;
  const auto thread = static_cast<std::uint32_t>(threadIdx.x);
  const int lane = static_cast<int>(thread) % warp_lanes;
  const RowPart part(task, blockIdx.x);
  if (thread == 0) {
    prefix.word = 0;
    prefix.shift = 32;
    for (std::uint32_t& word : prefix.words) word = 0;
    rank = task.k;
    equal = part.end - part.first;
    written = 0;
  }
  __syncthreads();

  while (equal != rank) {
    const int word = prefix.word;
    const int shift = prefix.shift;
    const std::uint32_t target_rank = rank;
    for (std::uint32_t i = thread; i < digits; i += tuning::radix_threads) counts[i] = 0;
    __syncthreads();
    // The next digit is in this word, or starts the next one.
    const int digit_word = shift == 0 ? word + 1 : word;
    const int digit_shift = (shift == 0 ? 32 : shift) - digit_bits;
    for (std::uint32_t position = part.first + thread; position < part.end;
         position += tuning::radix_threads) {
      const std::int32_t image = image_of(oriented(__ldg(part.values + position), task.sign_mask));
      if (compare<ties>(prefix, word, shift, image, position, part.ids) != Comparison::equal) continue;
      const std::uint32_t bits = key_word<ties>(digit_word, image, position, part.ids);
      atomicAdd(&counts[(bits >> digit_shift) % digits], 1U);
    }
    __syncthreads();
    if (thread < warp_lanes) {
      const DigitRank result = find_digit(counts, target_rank, lane);
      if (thread == 0) {
        prefix.word = digit_word;
        prefix.shift = digit_shift;
        prefix.words[digit_word] |= result.digit << digit_shift;
        rank = target_rank - result.below;
        equal = result.equal;
      }
    }
    __syncthreads();
  }

  std::int64_t* const part_entries = entries + std::size_t{blockIdx.x} * task.k;
  const int word = prefix.word;
  const int shift = prefix.shift;
  for (std::uint32_t first = part.first; first < part.end; first += tuning::radix_threads) {
    const std::uint32_t position = first + thread;
    bool chosen = false;
    std::int32_t image = 0;
    if (position < part.end) {
      image = image_of(oriented(__ldg(part.values + position), task.sign_mask));
      chosen = compare<ties>(prefix, word, shift, image, position, part.ids) != Comparison::above;
    }
    // One atomic operation per warp.
    const std::uint32_t chosen_lanes = __ballot_sync(whole_warp, chosen);
    std::uint32_t output = 0;
    if (lane == 0 && chosen_lanes != 0)
      output = atomicAdd(&written, static_cast<std::uint32_t>(__popc(chosen_lanes)));
    output = __shfl_sync(whole_warp, output, 0);
    output += static_cast<std::uint32_t>(__popc(chosen_lanes & ((1U << lane) - 1)));
    if (chosen) part_entries[output] = PositionKey::make(image, position, {}).bits;
  }
}

}  // namespace

void launch_radix_select(cudaStream_t stream, Ties ties, const SelectionTask& task, std::int64_t* entries) {
  const auto kernel = ties == Ties::positions    ? radix_select<Ties::positions>
                      : ties == Ties::narrow_ids ? radix_select<Ties::narrow_ids>
                                                 : radix_select<Ties::wide_ids>;
  launch(kernel, dim3(static_cast<unsigned>(task.rows * task.parts)), dim3(tuning::radix_threads), 0, stream,
         task, entries);
}

}  // namespace nearwise::gpu

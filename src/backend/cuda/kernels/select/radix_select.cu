// Radix selection. An element's key is a few 32-bit words, the most significant first: image, what breaks ties,
// position. Digit by digit the block counts the elements that agree with the k-th best so far, and learns its next
// digit; it stops as soon as all elements with the digits found belong to the answer. Values that are all different
// take four rounds, and ids are read only where values are equal.
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

// Words compare as unsigned numbers.
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

// What is known of the k-th best element: whole words, and the upper bits of one more.
struct Prefix {
  std::uint32_t words[4];
  int word;   // the one that is known in part
  int shift;  // its lower bits that are not known
};

enum class Against { below, equal, above };

template <Ties ties>
__device__ __forceinline__ Against compare(const Prefix& prefix, int word, int shift, std::int32_t image,
                                           std::uint32_t position, const DeviceRowIds& ids) {
  for (int i = 0; i <= word; ++i) {
    // A word of which nothing is known would be shifted by its own length.
    if (i == word && shift == 32) break;
    const std::uint32_t mine = key_word<ties>(i, image, position, ids) >> (i == word ? shift : 0);
    const std::uint32_t known = prefix.words[i] >> (i == word ? shift : 0);
    if (mine != known) return mine < known ? Against::below : Against::above;
  }
  return Against::equal;
}

template <Ties ties>
__global__ void __launch_bounds__(tuning::radix_threads)
    radix_select(SelectionTask task, std::int64_t* entries) {
  __shared__ std::uint32_t counts[digits];
  __shared__ Prefix prefix;
  __shared__ std::uint32_t rank;   // of the k-th best among the elements that agree with the prefix
  __shared__ std::uint32_t equal;  // their number
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
    const std::uint32_t wanted = rank;
    for (std::uint32_t i = thread; i < digits; i += tuning::radix_threads) counts[i] = 0;
    __syncthreads();
    // The next digit lies in this word, or begins the next one.
    const int digit_word = shift == 0 ? word + 1 : word;
    const int digit_shift = (shift == 0 ? 32 : shift) - digit_bits;
    for (std::uint32_t position = part.first + thread; position < part.end;
         position += tuning::radix_threads) {
      const std::int32_t image = image_of(turned(__ldg(part.values + position), task.turn));
      if (compare<ties>(prefix, word, shift, image, position, part.ids) != Against::equal) continue;
      const std::uint32_t bits = key_word<ties>(digit_word, image, position, part.ids);
      atomicAdd(&counts[(bits >> digit_shift) % digits], 1U);
    }
    __syncthreads();
    if (thread < warp_lanes) {
      const DigitFound found = find_digit(counts, wanted, lane);
      if (thread == 0) {
        prefix.word = digit_word;
        prefix.shift = digit_shift;
        prefix.words[digit_word] |= found.digit << digit_shift;
        rank = wanted - found.below;
        equal = found.equal;
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
      image = image_of(turned(__ldg(part.values + position), task.turn));
      chosen = compare<ties>(prefix, word, shift, image, position, part.ids) != Against::above;
    }
    // One atomic operation for all lanes of a warp.
    const std::uint32_t others = __ballot_sync(whole_warp, chosen);
    std::uint32_t place = 0;
    if (lane == 0 && others != 0) place = atomicAdd(&written, static_cast<std::uint32_t>(__popc(others)));
    place = __shfl_sync(whole_warp, place, 0);
    place += static_cast<std::uint32_t>(__popc(others & ((1U << lane) - 1)));
    if (chosen) part_entries[place] = PositionKey::make(image, position, {}).bits;
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

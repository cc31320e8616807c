// Evaluated vectors in the order of results, and a heap of the best k.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "nearwise/types.h"

namespace nearwise::cpu {

// Ordered by key, then row. Keys are sort_key() of the reported distance.
struct Answer {
  float key;
  std::uint32_t row;
  friend bool operator<(const Answer& left, const Answer& right) {
    return left.key < right.key || (left.key == right.key && left.row < right.row);
  }
};

// Keeps the k best in `heap` [k], worst on top.
template <typename T, typename Count, typename Better = std::less<>>
void offer_answer(T* heap, Count& count, std::size_t k, const T& answer, const Better& better = {}) {
  if (count < k) {
    heap[count++] = answer;
    std::push_heap(heap, heap + count, better);
  } else if (better(answer, heap[0])) {
    std::pop_heap(heap, heap + k, better);
    heap[k - 1] = answer;
    std::push_heap(heap, heap + k, better);
  }
}

// Writes one row of results, padded if there are fewer than k.
void write_answers(std::span<const Answer> answers, Metric metric, Id id_offset, std::span<Id> ids,
                   std::span<float> distances);

}  // namespace nearwise::cpu

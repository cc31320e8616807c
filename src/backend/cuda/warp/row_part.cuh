// One row of a selection or one part of it: columns, ids, output.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/device/selection_task.h"

namespace nearwise::gpu {

// Ids of a row's columns: the caller's, 32 or 64 bits, or the positions.
struct DeviceRowIds {
  const std::uint32_t* narrow = nullptr;
  const std::int64_t* wide = nullptr;
  std::int64_t first = 0;  // id of position 0

  __device__ __forceinline__ std::int64_t at(std::uint32_t position) const {
    if (wide != nullptr) return wide[position];
    return narrow != nullptr ? std::int64_t{narrow[position]} : first + position;
  }
};

// Positions are columns of the row; a part has columns [first, end).
struct RowPart {
  const float* values;
  DeviceRowIds ids;
  std::uint32_t first;
  std::uint32_t end;
  float* best;
  std::int64_t* best_ids;

  // Parts are numbered row by row. If lengths differ, the first parts have one more column.
  __device__ __forceinline__ RowPart(const SelectionTask& task, std::uint32_t number) {
    const std::size_t row = number / task.parts;
    const std::uint32_t part = number % task.parts;
    const std::uint32_t shortest = task.cols / task.parts;
    const std::uint32_t longer_parts = task.cols % task.parts;
    values = task.values + row * task.value_stride;
    ids = {task.narrow_ids == nullptr ? nullptr : task.narrow_ids + row * task.id_stride,
           task.wide_ids == nullptr ? nullptr : task.wide_ids + row * task.id_stride, task.first_id};
    first = part * shortest + min(part, longer_parts);
    end = first + shortest + (part < longer_parts ? 1 : 0);
    const std::size_t first_best = row * task.best_stride + std::size_t{part} * task.k;
    best = task.best + first_best;
    best_ids = task.ids + first_best;
  }
};

}  // namespace nearwise::gpu

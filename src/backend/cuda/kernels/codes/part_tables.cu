#include "backend/cuda/kernels/codes/part_tables.h"

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/code_part.cuh"
#include "core/distance.h"

namespace nearwise::gpu {
namespace {

constexpr unsigned threads = 256;

// One thread per entry, with the eight partial sums of a reported distance.
template <TableEntry entry>
__global__ void part_tables(PartTablesTask task) {
  const std::uint32_t number = blockIdx.x * threads + threadIdx.x;
  if (number >= task.books.parts << task.books.bits) return;
  const std::uint32_t part = number >> task.books.bits;
  const CodePart code_part = part_of(task.books, part);
  const float* const codeword =
      code_part.codewords + std::size_t{number - (part << task.books.bits)} * code_part.length;
  const float* const query = task.queries + blockIdx.y * std::size_t{task.books.dim} + code_part.begin;
  double sums[distance_lanes] = {};
  for (std::uint32_t first = 0; first < code_part.length; first += distance_lanes) {
#pragma unroll
    for (std::uint32_t lane = 0; lane < distance_lanes; ++lane) {
      const std::uint32_t i = first + lane;
      if (i >= code_part.length) continue;
      const double x = query[i];
      const double y = codeword[i];
      if constexpr (entry == TableEntry::square)
        sums[lane] += (x - y) * (x - y);
      else if constexpr (entry == TableEntry::product)
        sums[lane] += x * y;
      else
        sums[lane] -= (task.centre != nullptr ? x - task.centre[code_part.begin + i] : x) * y;
    }
  }
  task.tables[blockIdx.y * (std::size_t{task.books.parts} << task.books.bits) + number] =
      static_cast<float>(sum_of_lanes(sums));
}

}  // namespace

void launch_part_tables(cudaStream_t stream, TableEntry entry, const PartTablesTask& task) {
  if (task.count == 0) return;
  const unsigned entries = task.books.parts << task.books.bits;
  const auto kernel = entry == TableEntry::square    ? part_tables<TableEntry::square>
                      : entry == TableEntry::product ? part_tables<TableEntry::product>
                                                     : part_tables<TableEntry::negated_product>;
  launch(kernel, dim3((entries + threads - 1) / threads, static_cast<unsigned>(task.count)), dim3(threads), 0,
         stream, task);
}

}  // namespace nearwise::gpu

// Stream of the CPU backend: a context and the kernels of its instruction set.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/kernels/codes/code_distances.h"
#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu {

class CpuStream : public Stream {
 public:
  explicit CpuStream(Context::State& state)
      : Stream(state),
        set(choose_instruction_set(state.options.isa)),
        row_distance(row_distance_kernels(set)),
        row_estimate(row_estimate_kernels(set)),
        pack_rows(pack_rows_kernels(set)),
        candidate_list(candidate_list_kernels(set)),
        select_k(select_k_kernels(set)),
        code_distances(code_distance_kernels(set)) {}

  const Threads& threads() const { return *context.threads; }
  MemoryBudget& budget() const { return *context.budget; }

  const InstructionSet set;
  const RowDistanceKernels& row_distance;
  const RowEstimateKernels& row_estimate;
  const PackRowsKernels& pack_rows;
  const CandidateListKernels& candidate_list;
  const SelectKKernels& select_k;
  const CodeDistanceKernels& code_distances;
};

// The dispatcher passes only CPU streams to operations of this backend.
inline CpuStream& cpu_stream(Stream& stream) { return static_cast<CpuStream&>(stream); }
inline const CpuStream& cpu_stream(const Stream& stream) { return static_cast<const CpuStream&>(stream); }

}  // namespace nearwise::cpu

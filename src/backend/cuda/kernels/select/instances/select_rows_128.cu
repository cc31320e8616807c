#include "backend/cuda/kernels/select/select_rows.cuh"

namespace nearwise::gpu {

template void launch_select_rows<Ties::positions, 128>(cudaStream_t stream, const SelectionTask& task);
template void launch_select_rows<Ties::narrow_ids, 128>(cudaStream_t stream, const SelectionTask& task);
template void launch_select_rows<Ties::wide_ids, 128>(cudaStream_t stream, const SelectionTask& task);

}  // namespace nearwise::gpu

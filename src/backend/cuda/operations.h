// The operations of the CUDA backend (src/backend/ops.h), one .cu each.
#pragma once

#include "backend/ops.h"

namespace nearwise::gpu {

std::uint64_t select_k_bytes(const Stream& stream, const SelectKShape& shape);
void select_k(Stream& stream, const SelectKArgs& args);

}  // namespace nearwise::gpu

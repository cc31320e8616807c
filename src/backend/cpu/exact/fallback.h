// Fallback of a coarse scan: scans part of a block more precisely if the error bound excludes too few
// vectors.
#pragma once

#include "backend/cpu/rows/candidates.h"
#include "backend/cpu/stream.h"
#include "backend/ops.h"

namespace nearwise::cpu {

// Budgeted bytes of one thread.
std::uint64_t fallback_bytes(const CpuStream& cpu, std::size_t dim, std::size_t k);

// Scans rows [first_row, end_row) of args.base for queries [first_query, first_query + query_count) of
// `found`, on the calling thread, by products in floating point; for few queries without packing. Returns how
// many pairs were evaluated because lists were full.
std::uint64_t fallback_scan(CpuStream& cpu, const ScanKernel& kernel, const KnnBlockArgs& args,
                            Candidates& found, std::size_t first_query, std::size_t query_count,
                            std::size_t first_row, std::size_t end_row);

}  // namespace nearwise::cpu

// The fallback of a scan in low precision: part of a block scanned again in f32, where its scores told rows apart badly.
#pragma once

#include "backend/cpu/rows/candidates.h"
#include "backend/cpu/stream.h"
#include "backend/ops.h"

namespace nearwise::cpu {

// Bytes on the budget of one thread while it scans so.
std::uint64_t careful_part_bytes(const CpuStream& cpu, std::size_t dim, std::size_t k);

// Shows rows [first_row, end_row) of args.base to queries [first_query, first_query + query_count) of `found`, on the
// calling thread.
void scan_carefully(CpuStream& cpu, const KnnBlockArgs& args, Candidates& found, std::size_t first_query,
                    std::size_t query_count, std::size_t first_row, std::size_t end_row);

}  // namespace nearwise::cpu

// Search in inverted lists for few queries, without packing: codes are scored by lookup tables of the query,
// uncompressed vectors by estimates of their distances.
#pragma once

#include <optional>

#include "backend/cpu/stream.h"
#include "backend/ops.h"
#include "codes/codeword_tables.h"

namespace nearwise::cpu {

// Whether too few queries probe each list for packing to pay off.
bool is_direct_cheaper(const CpuStream& cpu, const ListSearchArgs& args);
void list_search_direct(CpuStream& cpu, const ListSearchArgs& args);

// The codec's tables, or new ones stored in `own`.
const CodewordTables& codewords_of(CpuStream& cpu, const ListSearchArgs& args,
                                   std::optional<CodewordTables>& own);

}  // namespace nearwise::cpu

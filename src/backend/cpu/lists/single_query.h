// Search in inverted lists for few queries: nothing is packed. Product codes are compared by tables of the query, rows by
// estimates of their distances.
#pragma once

#include <optional>

#include "backend/cpu/stream.h"
#include "backend/ops.h"
#include "codes/codeword_tables.h"

namespace nearwise::cpu {

// Whether too few queries share a list for packing it to pay.
bool is_direct_cheaper(const CpuStream& cpu, const ListSearchArgs& args);
void list_search_direct(CpuStream& cpu, const ListSearchArgs& args);

// Those of the codec, or made here and kept in `own`.
const CodewordTables& codewords_of(CpuStream& cpu, const ListSearchArgs& args,
                                   std::optional<CodewordTables>& own);

}  // namespace nearwise::cpu

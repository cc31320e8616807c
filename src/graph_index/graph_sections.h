// Parts of a graph index in files: in saved indexes (docs/format.md), and between the tasks of a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "backend/graph_search.h"
#include "codes/scalar_codec.h"
#include "graph_index/entry_tree.h"
#include "io/container/container_reader.h"
#include "io/container/container_writer.h"
#include "nearwise/matrix.h"

namespace nearwise::graph_index {

// Each throws Error(corrupt) for what no writer has written.

// Metric, dim and codes, as metadata.
nlohmann::json describe_codec(const ScalarCodec& codec);
ScalarCodec read_codec(const nlohmann::json& metadata, const std::string& source);

// row_bytes: of codes.
void write_entries(ContainerWriter& writer, const EntryTreeView& entries, std::size_t row_bytes);
EntryTree read_entries(const ContainerReader& reader, MatrixView<const std::uint8_t> codes);

// Edges are some of `rows` rows, and none follow the end of a list.
void check_edges(MatrixView<const std::int32_t> edges, std::size_t rows, const std::string& source);
void check_shape(bool right, const char* section, const std::string& source);

}  // namespace nearwise::graph_index

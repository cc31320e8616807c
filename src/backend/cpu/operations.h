// The operations of the CPU backend (src/backend/ops.h), one .cpp each.
#pragma once

#include "backend/ops.h"

namespace nearwise::cpu {

KnnCosts knn_costs(const Stream& stream, const KnnCostsArgs& args);
bool holds_bytes(Stream& stream, const RowsView& rows);
std::unique_ptr<PreparedRows> prepare_rows(Stream& stream, const PrepareArgs& args);
std::unique_ptr<Collector> start_top_k(Stream& stream, const TopKArgs& args);
std::unique_ptr<Collector> start_range(Stream& stream, const RangeArgs& args);
void knn_block(Stream& stream, const KnnBlockArgs& args);
void finish_top_k(Stream& stream, const FinishTopKArgs& args);
void finish_range(Stream& stream, const FinishRangeArgs& args);
void knn_direct(Stream& stream, const KnnDirectArgs& args);
SelfJoinCosts self_join_costs(const Stream& stream, const KnnCostsArgs& args);
bool self_join(Stream& stream, const SelfJoinArgs& args);
AssignCosts assign_costs(const Stream& stream, const KnnCostsArgs& args);
void assign(Stream& stream, const AssignArgs& args);
std::uint64_t centroid_means_bytes(const Stream& stream, std::size_t rows, std::size_t dim);
void centroid_means(Stream& stream, const CentroidMeansArgs& args);
ListSearchCosts list_search_costs(const Stream& stream, const ListSearchShape& shape);
void list_search(Stream& stream, const ListSearchArgs& args);
JoinCosts join_costs(const Stream& stream, const KnnCostsArgs& args);
std::unique_ptr<JoinState> start_join(Stream& stream, const StartJoinArgs& args);
void join_groups(Stream& stream, const JoinGroupsArgs& args);
std::uint64_t part_codes_bytes(const Stream& stream, const Codebooks& codebooks);
void part_codes(Stream& stream, const PartCodesArgs& args);
std::uint64_t part_tables_bytes(const Stream& stream, const Codebooks& codebooks);
void part_tables(Stream& stream, const PartTablesArgs& args);
std::uint64_t rotate_bytes(const Stream& stream, std::size_t dim, std::size_t rotated_dim);
void rotate(Stream& stream, const RotateArgs& args);
void cross_products(Stream& stream, const CrossProductsArgs& args);
std::uint64_t additive_codes_bytes(const Stream& stream, const AdditiveCodebooks& codebooks);
void additive_codes(Stream& stream, const AdditiveCodesArgs& args);
void code_sums(Stream& stream, const CodeSumsArgs& args);
std::uint64_t select_k_bytes(const Stream& stream, const SelectKShape& shape);
void select_k(Stream& stream, const SelectKArgs& args);

}  // namespace nearwise::cpu

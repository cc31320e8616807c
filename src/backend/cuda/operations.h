// Operations of the CUDA backend (src/backend/ops.h).
#pragma once

#include "backend/ops.h"

namespace nearwise::gpu {

KnnCosts knn_costs(const Stream& stream, const KnnCostsArgs& args);
void fetch_rows(Stream& stream, const RowsView& rows, std::byte* out);
std::unique_ptr<PreparedRows> prepare_rows(Stream& stream, const PrepareArgs& args);
std::unique_ptr<Collector> start_top_k(Stream& stream, const TopKArgs& args);
void knn_block(Stream& stream, const KnnBlockArgs& args);
void finish_top_k(Stream& stream, const FinishTopKArgs& args);
AssignCosts assign_costs(const Stream& stream, const KnnCostsArgs& args);
void assign(Stream& stream, const AssignArgs& args);
std::uint64_t centroid_means_bytes(const Stream& stream, std::size_t rows, std::size_t dim);
void centroid_means(Stream& stream, const CentroidMeansArgs& args);
ListSearchCosts list_search_costs(const Stream& stream, const ListSearchShape& shape);
void list_search(Stream& stream, const ListSearchArgs& args);
JoinCosts join_costs(const Stream& stream, const KnnCostsArgs& args);
std::unique_ptr<JoinState> start_join(Stream& stream, const StartJoinArgs& args);
void join_groups(Stream& stream, const JoinGroupsArgs& args);
std::uint64_t join_neighborhoods_bytes(const Stream& stream, std::size_t rows, std::size_t degree,
                                       std::size_t sample);
void join_neighborhoods(Stream& stream, const JoinNeighborhoodsArgs& args);
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
std::uintptr_t stream_handle(Stream& stream);
void wait_for_stream(Stream& stream, std::uintptr_t handle);

}  // namespace nearwise::gpu

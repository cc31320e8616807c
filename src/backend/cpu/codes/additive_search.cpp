// Exhaustive search in additive codes. For each tile of queries: tables, scores of all codes, k-selection. A
// score depends on its query and code alone, so results do not depend on the tile size.
#include <algorithm>
#include <cstddef>

#include "backend/cpu/operations.h"
#include "backend/cpu/stream.h"
#include "core/checked.h"
#include "core/memory.h"

namespace nearwise::cpu {
namespace {

constexpr const char* operation = "additive_search";
constexpr std::size_t codewords = 256;
// Queries per tile: enough for all threads, fewer if there are many codes.
constexpr std::size_t most_tile = 256;
constexpr std::uint64_t target_working_bytes = std::uint64_t{64} << 20;
// Codes per task, which stay in the L1 cache for all its queries.
constexpr std::size_t task_codes = 1024;
constexpr std::size_t task_queries = 16;
// Concurrent sums, to hide the latency of additions.
constexpr std::size_t codes_at_once = 8;

std::size_t table_size(const AdditiveSearchShape& shape) { return shape.code_bytes * codewords; }
std::size_t columns_of(const AdditiveSearchShape& shape) { return table_size(shape) - codewords; }

std::uint64_t tile_bytes(const Stream& stream, const AdditiveSearchShape& shape, std::size_t queries) {
  return buffer_bytes(columns_of(shape), sizeof(double)) +
         buffer_bytes(queries * table_size(shape), sizeof(float)) +
         buffer_bytes(checked_multiply(queries, shape.rows, operation), sizeof(float)) +
         std::max(rotate_bytes(stream, shape.dim, columns_of(shape)),
                  select_k_bytes(stream, {queries, shape.rows, shape.k}));
}

void fill_tables(CpuStream& cpu, const AdditiveSearchArgs& args, std::size_t first,
                 std::span<const double> offset, const MatrixView<float>& tables) {
  const std::size_t columns = args.columns.cols();
  rotate(cpu, {.rows = args.queries.slice(first, tables.rows()),
               .columns = args.columns,
               .offset = offset,
               .rotated = {tables.data(), tables.rows(), columns, tables.stride()},
               .progress = nullptr});
  for (std::size_t query = 0; query < tables.rows(); ++query)
    for (std::size_t level = 0; level < codewords; ++level)
      tables(query, columns + level) = args.norm_entry(first + query, level);
}

void add_up(const float* table, const MatrixView<const std::uint8_t>& codes, float* sums) {
  const std::size_t whole = codes.rows() / codes_at_once * codes_at_once;
  for (std::size_t first = 0; first < whole; first += codes_at_once) {
    const std::uint8_t* const code = codes.data() + first * codes.stride();
    float sum[codes_at_once] = {};
    for (std::size_t byte = 0; byte < codes.cols(); ++byte)
      for (std::size_t i = 0; i < codes_at_once; ++i)
        sum[i] += table[byte * codewords + code[i * codes.stride() + byte]];
    std::copy_n(sum, codes_at_once, sums + first);
  }
  for (std::size_t row = whole; row < codes.rows(); ++row) {
    sums[row] = 0;
    for (std::size_t byte = 0; byte < codes.cols(); ++byte)
      sums[row] += table[byte * codewords + codes(row, byte)];
  }
}

// scores: [queries, codes].
void add_up_all(CpuStream& cpu, const MatrixView<const float>& tables,
                const MatrixView<const std::uint8_t>& codes, const MatrixView<float>& scores) {
  const std::size_t blocks = divide_up(codes.rows(), task_codes);
  const std::size_t tasks = blocks * divide_up(tables.rows(), task_queries);
  cpu.threads().for_each(tasks, [&](std::size_t task) {
    cpu.context.cancel.check();
    const std::size_t first = task % blocks * task_codes;
    const auto block = codes.slice(first, std::min(task_codes, codes.rows() - first));
    const std::size_t first_query = task / blocks * task_queries;
    const std::size_t end_query = std::min(tables.rows(), first_query + task_queries);
    for (std::size_t query = first_query; query < end_query; ++query)
      add_up(tables.row(query).data(), block, &scores(query, first));
  });
}

}  // namespace

std::uint64_t additive_search_bytes(const Stream& stream, const AdditiveSearchShape& shape) {
  return tile_bytes(stream, shape, 1);
}

void additive_search(Stream& stream, const AdditiveSearchArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const AdditiveSearchShape shape = args.shape();
  const std::size_t queries = args.queries.rows();
  const std::uint64_t available = std::min(target_working_bytes, cpu.budget().available());
  std::size_t tile = std::min(most_tile, queries);
  while (tile > 1 && tile_bytes(stream, shape, tile) > available) tile = divide_up(tile, std::size_t{2});
  Buffer<double> offset(cpu.budget(), columns_of(shape));
  std::fill_n(offset.data(), offset.size(), 0.0);
  Buffer<float> tables(cpu.budget(), tile * table_size(shape));
  Buffer<float> scores(cpu.budget(), tile * shape.rows);
  for (std::size_t first = 0; first < queries; first += tile) {
    cpu.context.cancel.check();
    const std::size_t count = std::min(tile, queries - first);
    const MatrixView<float> tile_tables(tables.data(), count, table_size(shape));
    fill_tables(cpu, args, first, offset.span(), tile_tables);
    const MatrixView<float> tile_scores(scores.data(), count, shape.rows);
    add_up_all(cpu, tile_tables, args.codes, tile_scores);
    select_k(stream, {.values = tile_scores,
                      .column_ids = {},
                      .order = args.order,
                      .k = args.k,
                      .ids = args.ids.slice(first, count),
                      .best = args.best.slice(first, count),
                      .progress = args.progress});
  }
}

}  // namespace nearwise::cpu

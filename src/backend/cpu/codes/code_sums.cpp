// Sums of table entries of all codes: the scan of an exhaustive search in codes.
#include <algorithm>
#include <cstddef>

#include "backend/cpu/operations.h"
#include "backend/cpu/stream.h"
#include "core/checked.h"

namespace nearwise::cpu {
namespace {

constexpr std::size_t codewords = 256;
// Codes per task, which stay in the L1 cache for all its queries.
constexpr std::size_t task_rows = 1024;
constexpr std::size_t task_queries = 16;
// Concurrent sums, to hide the latency of additions.
constexpr std::size_t codes_at_once = 8;

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

}  // namespace

void code_sums(Stream& stream, const CodeSumsArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const std::size_t blocks = divide_up(args.codes.rows(), task_rows);
  const std::size_t tasks = blocks * divide_up(args.tables.rows(), task_queries);
  cpu.threads().for_each(tasks, [&](std::size_t task) {
    cpu.context.cancel.check();
    const std::size_t first = task % blocks * task_rows;
    const auto codes = args.codes.slice(first, std::min(task_rows, args.codes.rows() - first));
    const std::size_t first_query = task / blocks * task_queries;
    const std::size_t end_query = std::min(args.tables.rows(), first_query + task_queries);
    for (std::size_t query = first_query; query < end_query; ++query)
      add_up(args.tables.row(query).data(), codes, &args.sums(query, first));
  });
}

}  // namespace nearwise::cpu

// Product quantization on the CPU: codes of vectors, and lookup tables of queries. A task processes all parts
// of some vectors: these as f32 and the codewords of one part stay in the caches.
#include <algorithm>
#include <span>

#include "backend/cpu/kernels/codes/codeword_columns.h"
#include "backend/cpu/kernels/codes/codewords.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/rows/rows_to_floats.h"
#include "backend/cpu/stream.h"
#include "core/checked.h"

namespace nearwise::cpu {
namespace {

// Vectors per task: at least 100 us of work, and small enough for the L2 cache at common dimensions.
constexpr std::size_t task_rows = 128;
constexpr std::size_t task_queries = 8;

// Codebooks in the layout of the kernels.
class TransposedCodebooks {
 public:
  TransposedCodebooks(MemoryBudget& budget, const Codebooks& codebooks)
      : codebooks_(codebooks),
        columns_(budget, codebooks.dim * codebooks.count()),
        distinct_(budget, codebooks.parts * distinct_words) {
    for (std::size_t part = 0; part < codebooks.parts; ++part)
      fill_codeword_columns(codebooks.of(part).data(), codebooks.count(), codebooks.length(part),
                            columns_.data() + codebooks.begin(part) * codebooks.count(),
                            distinct_.data() + part * distinct_words);
  }

  static std::uint64_t bytes(const Codebooks& codebooks) {
    return buffer_bytes(codebooks.dim * codebooks.count(), sizeof(float)) +
           buffer_bytes(codebooks.parts * distinct_words, sizeof(std::uint64_t));
  }

  CodewordsView of(std::size_t part) const {
    return {.values = codebooks_.of(part).data(),
            .columns = columns_.data() + codebooks_.begin(part) * codebooks_.count(),
            .dim = codebooks_.length(part),
            .count = codebooks_.count(),
            .distinct = distinct_.data() + part * distinct_words};
  }

 private:
  const Codebooks& codebooks_;
  Buffer<float> columns_;           // all parts, each [elements, 2^bits]
  Buffer<std::uint64_t> distinct_;  // [parts, distinct_words]
};

RowsView task_part(const RowsView& rows, std::size_t task, std::size_t size) {
  return rows.slice(task * size, std::min(size, rows.rows() - task * size));
}

void write_codes(std::span<const std::uint8_t> nearest, std::size_t part, unsigned bits,
                 const MatrixView<std::uint8_t>& codes) {
  for (std::size_t row = 0; row < nearest.size(); ++row) {
    if (bits == 8)
      codes(row, part) = nearest[row];
    else if (part % 2 == 0)
      codes(row, part / 2) = nearest[row];
    else
      codes(row, part / 2) = static_cast<std::uint8_t>(codes(row, part / 2) | nearest[row] << 4);
  }
}

std::uint64_t bytes_per_thread(const Codebooks& codebooks, std::size_t rows) {
  return buffer_bytes(codebooks.dim * rows, sizeof(float));
}

}  // namespace

std::uint64_t part_codes_bytes(const Stream& stream, const Codebooks& codebooks) {
  return TransposedCodebooks::bytes(codebooks) +
         static_cast<std::uint64_t>(cpu_stream(stream).threads().count()) *
             bytes_per_thread(codebooks, task_rows);
}

void part_codes(Stream& stream, const PartCodesArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const CodewordKernels& kernels = codeword_kernels(cpu.set);
  const TransposedCodebooks transposed(cpu.budget(), args.codebooks);
  cpu.threads().for_each(divide_up(args.rows.rows(), task_rows), [&](std::size_t task) {
    cpu.context.cancel.check();
    const RowsView rows = task_part(args.rows, task, task_rows);
    Buffer<float> floats(cpu.budget(), rows.rows() * rows.dim());
    rows_to_floats(rows, floats.data());
    std::uint8_t nearest[task_rows];
    for (std::size_t part = 0; part < args.codebooks.parts; ++part) {
      kernels.nearest({.codewords = transposed.of(part),
                       .rows = floats.data() + args.codebooks.begin(part),
                       .stride = rows.dim(),
                       .count = rows.rows(),
                       .nearest = nearest});
      write_codes({nearest, rows.rows()}, part, args.codebooks.bits,
                  args.codes.slice(task * task_rows, rows.rows()));
    }
    if (args.progress != nullptr) args.progress->add(rows.rows());
  });
}

std::uint64_t part_tables_bytes(const Stream& stream, const Codebooks& codebooks) {
  return TransposedCodebooks::bytes(codebooks) +
         static_cast<std::uint64_t>(cpu_stream(stream).threads().count()) *
             bytes_per_thread(codebooks, task_queries);
}

void part_tables(Stream& stream, const PartTablesArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const CodewordKernels& kernels = codeword_kernels(cpu.set);
  const auto fill = args.metric == Metric::inner_product ? kernels.products : kernels.differences;
  const TransposedCodebooks transposed(cpu.budget(), args.codebooks);
  cpu.threads().for_each(divide_up(args.queries.rows(), task_queries), [&](std::size_t task) {
    cpu.context.cancel.check();
    const RowsView queries = task_part(args.queries, task, task_queries);
    Buffer<float> floats(cpu.budget(), queries.rows() * queries.dim());
    rows_to_floats(queries, floats.data());
    for (std::size_t query = 0; query < queries.rows(); ++query)
      for (std::size_t part = 0; part < args.codebooks.parts; ++part)
        fill({.codewords = transposed.of(part),
              .query = floats.data() + query * queries.dim() + args.codebooks.begin(part),
              .table = &args.tables(task * task_queries + query, part * args.codebooks.count())});
    if (args.progress != nullptr) args.progress->add(queries.rows());
  });
}

}  // namespace nearwise::cpu

#include "backend/cpu/lists/single_query.h"

#include <algorithm>
#include <vector>

#include "backend/cpu/lists/list_collector.h"
#include "backend/cpu/lists/list_rows.h"
#include "backend/cpu/lists/table_scan.h"
#include "codes/codeword_tables.h"
#include "core/convert.h"

namespace nearwise::cpu {
namespace {

// Vectors per task: queries that scan more are split among threads.
constexpr std::size_t task_rows = 32768;

// Lengths of unpacked queries, as ListBound takes them: no packing error.
struct DirectQueries {
  std::vector<Lengths> lengths;
  std::vector<double> squares;  // |q'|^2

  explicit DirectQueries(const ListSearchArgs& args)
      : lengths(args.queries.rows()), squares(args.queries.rows()) {
    std::vector<double> query(args.codec.dim);
    for (std::size_t index = 0; index < lengths.size(); ++index) {
      row_to_double(args.queries, index, query.data());
      for (std::size_t i = 0; i < args.centre.size(); ++i) query[i] -= args.centre[i];
      squares[index] = squares_of(query);
      // For cosine, queries are scaled to length 1.
      lengths[index] = {.norm = args.metric == Metric::cosine ? 1 : length_bound(squares[index]),
                        .residual = 0};
    }
  }
};

ResidualLengths lengths_of(const ListCodec& codec, const CodewordTables& codewords) {
  return {.centroid = codewords.longest_centroid(),
          .given_centroid = codewords.longest_given_centroid(),
          .codewords = {.norm = codewords.longest_codewords(), .residual = 0},
          .operations = table_operations(codec)};
}

}  // namespace

const CodewordTables& codewords_of(CpuStream& cpu, const ListSearchArgs& args,
                                   std::optional<CodewordTables>& own) {
  return args.codec.tables != nullptr ? *args.codec.tables
                                      : own.emplace(cpu.budget(), args.codec, args.centre);
}

// Packing a list pays off from `most` queries per list. Measured in queries per CPU second, direct against
// packed:
//   PQ, tables in registers (SIFT1M, 16 bytes, 1,024 lists, 22 probes, 2026-11-15):
//     4 queries per list 4,760 against 2,650; 11 per list 4,360 against 5,740.
//   Additive codes, decoded to be packed (SIFT, 200,000 vectors, 8 bytes, 512 lists, 8 probes, 2026-11-16):
//     31 per list 25,700 against 14,300; 62 per list 20,900 against 24,100; avx2, 16 per list 10,300
//     against 7,400.
bool is_direct_cheaper(const CpuStream& cpu, const ListSearchArgs& args) {
  std::size_t most = 8;
  if (args.codec.encoding == ListEncoding::lsq)
    most = TableScan::has_registers(cpu) ? 48 : 24;
  else if (args.codec.encoding == ListEncoding::pq && !TableScan::has_registers(cpu))
    most = 3;
  return args.queries.rows() * args.probe_count() < most * args.lists.size();
}

void list_search_direct(CpuStream& cpu, const ListSearchArgs& args) {
  const std::size_t queries = args.queries.rows();
  const std::size_t probes = args.probe_count();
  const ListNumbers numbers(args.lists, ListNumbers::Lookups::few);
  const bool by_tables = !args.codec.is_flat();
  std::optional<CodewordTables> own_codewords;
  const CodewordTables* const codewords = by_tables ? &codewords_of(cpu, args, own_codewords) : nullptr;
  const DirectQueries direct(args);
  const ListBound bound = by_tables ? ListBound(args.metric, Products::f32, args.codec.dim,
                                                lengths_of(args.codec, *codewords), direct.squares)
                                    : ListBound(args.metric, Products::f32, args.codec.dim);
  ListCollector found(cpu, direct.lengths, args, numbers, bound, ScoreForm::corrected, {});

  const std::size_t pieces = std::clamp<std::size_t>(numbers.rows() / args.lists.size() * probes / task_rows,
                                                     1, static_cast<std::size_t>(cpu.threads().count()));
  cpu.threads().for_each(queries * pieces, [&](std::size_t task) {
    const std::size_t query = task / pieces;
    if (by_tables) {
      TableScan(cpu, args, *codewords, numbers, bound, found).scan_query(query, task % pieces, pieces);
      return;
    }
    // Nearest lists first: they lower the limit for the others.
    for (std::size_t probe = task % pieces; probe < probes; probe += pieces) {
      const Id list = args.probes[query * probes + probe];
      if (list == no_id) continue;
      cpu.context.cancel.check();
      found.estimate(query, static_cast<std::size_t>(list));
    }
  });
  cpu.threads().for_each(queries, [&](std::size_t query) { found.finish(query, query + 1); });
}

}  // namespace nearwise::cpu

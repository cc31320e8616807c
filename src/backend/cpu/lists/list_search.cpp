// Search in inverted lists: packs every list once and scans it for all queries that probe it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "backend/cpu/lists/list_collector.h"
#include "backend/cpu/lists/product_panels.h"
#include "backend/cpu/lists/query_rows.h"
#include "backend/cpu/lists/single_query.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/rows/choose_scan.h"
#include "backend/cpu/rows/prepared_rows.h"
#include "codes/codeword_tables.h"
#include "core/checked.h"
#include "core/convert.h"

namespace nearwise::cpu {
namespace {

// Vectors of a list decoded and packed at a time: with a group of queries they fit the L2 cache.
constexpr std::size_t max_block_rows = 1024;
// Queries gathered into panels at a time.
constexpr std::size_t max_group_queries = 256;
// Entries of a candidate list during a scan in addition to one panel of vectors.
constexpr std::size_t scan_spare = 48;
// Queries per task where queries are processed one by one.
constexpr std::size_t task_queries = 64;
constexpr std::size_t store_slack = 16;  // entries past the end that a vector store may write

// Queries by the list they probe.
struct Probes {
  std::vector<std::size_t> ends;       // [lists]
  std::vector<std::uint32_t> queries;  // per list in ascending order
  // Score offset of query and list if vectors are packed without their centroid; else 0.
  std::vector<float> offsets;

  struct OfList {
    std::span<const std::uint32_t> queries;
    std::span<const float> offsets;
  };

  static std::uint64_t bytes(std::size_t lists, std::size_t probes) {
    return lists * sizeof(std::size_t) + probes * 2 * sizeof(std::uint32_t);
  }
  // of_pairs: offsets in the order of args.probes; may be empty.
  Probes(const ListSearchArgs& args, std::span<const float> of_pairs) : ends(args.lists.size()) {
    for (const Id list : args.probes)
      if (list != no_id) ++ends[static_cast<std::size_t>(list)];
    std::size_t sum = 0;
    for (std::size_t& end : ends) end = (sum += end) - end;  // start of its queries
    queries.resize(sum);
    offsets.resize(sum);
    for (std::size_t i = 0; i < args.probes.size(); ++i) {
      if (args.probes[i] == no_id) continue;
      const std::size_t place = ends[static_cast<std::size_t>(args.probes[i])]++;
      queries[place] = static_cast<std::uint32_t>(i / args.probe_count());
      if (!of_pairs.empty()) offsets[place] = of_pairs[i];
    }
  }
  OfList of(std::size_t list) const {
    const std::size_t begin = list == 0 ? 0 : ends[list - 1];
    return {std::span(queries).subspan(begin, ends[list] - begin),
            std::span(offsets).subspan(begin, ends[list] - begin)};
  }
};

// Per-query terms of the scores of product codes packed without their centroid (list_bound.h).
struct ResidualQueries {
  Buffer<double> squares;  // [queries] |q'|^2
  Buffer<float> offsets;   // [queries, probes] -q'c'

  ResidualQueries(CpuStream& cpu, const ListSearchArgs& args)
      : squares(cpu.budget(), args.queries.rows()), offsets(cpu.budget(), args.probes.size()) {
    cpu.threads().for_each(divide_up(args.queries.rows(), task_queries), [&](std::size_t task) {
      const std::size_t end = std::min(args.queries.rows(), (task + 1) * task_queries);
      std::vector<double> query(args.codec.dim);
      std::vector<std::uint32_t> lists(args.probe_count());
      std::vector<double> products(args.probe_count());
      for (std::size_t i = task * task_queries; i < end; ++i) fill(cpu, args, i, query, lists, products);
    });
  }
  static std::uint64_t bytes_per_query(std::size_t probes) { return sizeof(double) + probes * sizeof(float); }

 private:
  void fill(const CpuStream& cpu, const ListSearchArgs& args, std::size_t index, std::vector<double>& query,
            std::vector<std::uint32_t>& lists, std::vector<double>& products) {
    row_to_double(args.queries, index, query.data());
    double with_centre = 0;
    squares[index] = 0;
    for (std::size_t i = 0; i < query.size(); ++i) {
      const double centre = args.centre.empty() ? 0 : args.centre[i];
      query[i] -= centre;
      with_centre += query[i] * centre;
      squares[index] += query[i] * query[i];
    }
    const std::span<const Id> probes = args.probes.subspan(index * lists.size(), lists.size());
    std::ranges::transform(probes, lists.begin(),
                           [](Id list) { return list == no_id ? 0U : static_cast<std::uint32_t>(list); });
    const RowsView centroids = args.codec.centroids;
    cpu.row_distance.product[static_cast<std::size_t>(ElementType::f32)](
        {.query = query.data(),
         .base = centroids.data(),
         .stride_bytes = centroids.stride_bytes(),
         .dim = query.size(),
         .rows = lists.data(),
         .count = lists.size(),
         .sums = products.data()});
    for (std::size_t i = 0; i < lists.size(); ++i)
      offsets[index * lists.size() + i] = static_cast<float>(with_centre - products[i]);
  }
};

struct Block {
  std::size_t list;
  std::size_t first;  // row of the list
  std::size_t rows;
};

// Scans blocks one at a time. Not thread-safe.
class BlockScan {
 public:
  // panels: product codes packed without their centroid; null: vectors are packed whole.
  BlockScan(CpuStream& cpu, const ListSearchArgs& args, const ScanKernel& scan, const QueryRows& queries,
            const ListNumbers& numbers, const ProductPanels* panels, ListCollector& found)
      : cpu_(cpu),
        args_(args),
        scan_(scan),
        queries_(queries),
        numbers_(numbers),
        product_(panels),
        found_(found),
        row_bytes_(args.codec.dim * element_size(args.codec.type)),
        capacity_(scan_spare + scan.base_width),
        stride_(capacity_ + store_slack),
        panels_(cpu.budget(), group_size(scan) * encoded_row_bytes(scan, args.codec.dim)),
        decoded_(cpu.budget(), !args.codec.is_flat() && panels == nullptr ? scan.base_width * row_bytes_ : 0),
        tables_(cpu.budget(), panels == nullptr ? 0 : ProductPanels::table_size(args.codec)),
        packed_(cpu.budget(), scan, RowsRole::base, max_block_rows, args.codec.dim),
        scores_(cpu.budget(), group_size(scan) * stride_),
        rows_(cpu.budget(), group_size(scan) * stride_),
        counts_(cpu.budget(), group_size(scan)),
        cutoffs_(cpu.budget(), group_size(scan)) {
    // ProductPanels does not write the padding after the last part.
    if (panels != nullptr) std::memset(packed_.panel(0), 0, packed_.panel_count() * packed_.panel_bytes());
  }

  static std::size_t group_size(const ScanKernel& scan) {
    return round_up(max_group_queries, scan.query_width);
  }
  static std::uint64_t bytes(const ScanKernel& scan, const ListSearchShape& shape) {
    const std::size_t entries = scan_spare + scan.base_width + store_slack;
    return group_size(scan) * (encoded_row_bytes(scan, shape.dim) + entries * 8 + 8) +
           scan.base_width * shape.dim * element_size(shape.row_type) +
           round_up(max_block_rows, scan.base_width) *
               PackedRows::bytes_per_row(scan, RowsRole::base, shape.dim) +
           buffer_bytes(256 * std::max(shape.dim, shape.codebooks), sizeof(float)) +
           PackedRows::scratch_bytes(scan, shape.dim) + 1024;
  }

  void scan(const Block& block, const Probes::OfList& probes) {
    cpu_.context.cancel.check();
    first_row_ = numbers_.first(block.list) + static_cast<std::uint32_t>(block.first);
    last_row_ = first_row_ + static_cast<std::uint32_t>(block.rows - 1);
    const ListView& list = args_.lists[block.list];
    if (product_ != nullptr) {
      const float* const norms =
          args_.norms.empty() ? nullptr : args_.norms[block.list].load(std::memory_order_acquire);
      longest_ = product_->fill(list, block.list, block.first, block.rows, norms, tables_.span(), packed_);
    } else if (!pack(list, block)) {
      for (const std::uint32_t query : probes.queries) found_.evaluate(query, first_row_, block.rows);
      return;
    }
    scan_queries(block.rows, probes);
  }

 private:
  // Decodes one panel at a time, which stays in the L1 cache until packed. Returns false if a reconstruction
  // is outside the f32 range: such a block has no scores.
  bool pack(const ListView& list, const Block& block) {
    const std::byte* const rows = list.codes + block.first * row_bytes_;
    const bool decodes = !args_.codec.is_flat();
    const PrepareArgs prepare = {
        .rows = {decodes ? decoded_.data() : rows, args_.codec.type, block.rows, args_.codec.dim, row_bytes_},
        .role = RowsRole::base,
        .type = args_.codec.type,
        .against = args_.queries.type(),
        .metric = args_.metric,
        .centre = args_.centre};
    PanelPacker packer(cpu_, prepare, packed_);
    for (std::size_t first = 0; first < block.rows; first += packed_.width) {
      const std::size_t count = std::min(packed_.width, block.rows - first);
      if (decodes) decode_rows(args_.codec, list, block.list, block.first + first, count, decoded_.data());
      if (packer.pack(first / packed_.width, decodes ? 0 : first, count) != PanelPacker::good_panel)
        return false;
    }
    longest_ = packer.longest();
    return true;
  }

  void scan_queries(std::size_t rows, const Probes::OfList& probes) {
    const std::size_t size = group_size(scan_);
    for (std::size_t first = 0; first < probes.queries.size(); first += size) {
      const std::size_t count = std::min(size, probes.queries.size() - first);
      group_ = {probes.queries.subspan(first, count), probes.offsets.subspan(first, count)};
      scan_group(rows);
    }
  }

  void scan_group(std::size_t rows) {
    const std::span<const std::uint32_t> queries = group_.queries;
    queries_.gather(queries, panels_.data());
    const std::size_t places = round_up(queries.size(), scan_.query_width);
    for (std::size_t i = 0; i < places; ++i) {
      counts_[i] = 0;
      if (i < queries.size())
        set_cutoff(i);
      else
        cutoffs_[i] = std::numeric_limits<float>::quiet_NaN();
    }
    const bool integers = is_integer(scan_.base_encoding);
    scan_.scan(
        {.query_panels = panels_.data(),
         .query_panel_count = places / scan_.query_width,
         .first_query = 0,
         .base_panels = packed_.panel(0),
         .biases = integers ? nullptr : packed_.biases.data(),
         .integer_biases = integers ? packed_.integer_biases.data() : nullptr,
         .half_biases = integers ? packed_.half_biases.data() : nullptr,
         .base_panel_count = divide_up(rows, packed_.width),
         .first_row = first_row_,
         .end_row = first_row_ + static_cast<std::uint32_t>(rows),
         .row_bytes = packed_.row_bytes,
         .lists = {scores_.data(), rows_.data(), counts_.data(), cutoffs_.data(), stride_, capacity_},
         .make_room = [](void* owner, std::size_t query) { static_cast<BlockScan*>(owner)->flush(query); },
         .owner = this});
    for (std::size_t i = 0; i < queries.size(); ++i) {
      if (counts_[i] != 0) flush_candidates(i);
      if (std::isnan(cutoffs_[i])) found_.evaluate(queries[i], first_row_, rows);
    }
  }

  // Scores of the scan lack the offset of query and list.
  void set_cutoff(std::size_t i) {
    const float cutoff = found_.cutoff(group_.queries[i], longest_);
    cutoffs_[i] = group_.offsets[i] == 0 || cutoff == std::numeric_limits<float>::max()
                      ? cutoff
                      : std::nextafter(cutoff - group_.offsets[i], std::numeric_limits<float>::infinity());
  }
  void flush_candidates(std::size_t i) {
    float* const scores = scores_.data() + i * stride_;
    for (std::size_t entry = 0; entry < counts_[i]; ++entry) scores[entry] += group_.offsets[i];
    found_.add(group_.queries[i], longest_, {scores, counts_[i]}, {rows_.data() + i * stride_, counts_[i]},
               first_row_, last_row_);
    counts_[i] = 0;
  }
  void flush(std::size_t i) {
    flush_candidates(i);
    set_cutoff(i);
  }

  CpuStream& cpu_;
  const ListSearchArgs& args_;
  const ScanKernel& scan_;
  const QueryRows& queries_;
  const ListNumbers& numbers_;
  const ProductPanels* const product_;
  ListCollector& found_;
  const std::size_t row_bytes_;
  const std::size_t capacity_;
  const std::size_t stride_;
  Buffer<std::byte> panels_;   // of a group of queries
  Buffer<std::byte> decoded_;  // one panel of vectors
  Buffer<float> tables_;       // of a list
  PackedRows packed_;          // of a block
  // Candidate lists of a group.
  Buffer<float> scores_;
  Buffer<std::uint32_t> rows_;
  Buffer<std::uint32_t> counts_;
  Buffer<float> cutoffs_;
  // Current block.
  Lengths longest_;
  std::uint32_t first_row_ = 0;
  std::uint32_t last_row_ = 0;
  Probes::OfList group_;
};

ScanKernel scan_of(const CpuStream& cpu, Metric metric, ElementType queries, ElementType rows,
                   std::size_t dim) {
  return choose_scan(cpu.set, metric, queries, rows, dim);
}

}  // namespace

ListSearchCosts list_search_costs(const Stream& stream, const ListSearchShape& shape) {
  const CpuStream& cpu = cpu_stream(stream);
  const ScanKernel scan = scan_of(cpu, shape.metric, shape.query_type, shape.row_type, shape.dim);
  const std::uint64_t per_thread = BlockScan::bytes(scan, shape) + ListCollector::scratch_bytes(shape);
  return {.bytes_per_query = PackedRows::bytes_per_row(scan, RowsRole::queries, shape.dim) +
                             QueryRows::bytes_per_query(scan, shape.dim) +
                             ListCollector::bytes_per_query(shape.candidates) +
                             ResidualQueries::bytes_per_query(shape.probes) + sizeof(double) +
                             shape.probes * 2 * sizeof(std::uint32_t),
          .fixed_bytes = 4096 + static_cast<std::uint64_t>(cpu.threads().count()) * per_thread +
                         ListNumbers::bytes(shape.lists, shape.rows) + Probes::bytes(shape.lists, 0) +
                         CodewordTables::bytes(shape.dim, shape.codebooks) +
                         ProductPanels::bytes(scan, shape.dim),
          .denies_ids = true};
}

void list_search(Stream& stream, const ListSearchArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  if (is_direct_cheaper(cpu, args)) {
    list_search_direct(cpu, args);
    return;
  }
  const ListNumbers numbers(args.lists, ListNumbers::Lookups::many);
  const PrepareArgs prepare = {.rows = args.queries,
                               .role = RowsRole::queries,
                               .type = args.queries.type(),
                               .against = args.codec.type,
                               .metric = args.metric,
                               .centre = args.centre};
  const auto prepared = prepare_rows(stream, prepare);
  const auto& packed = static_cast<const PackedRows&>(*prepared);
  const QueryRows queries(cpu, packed);
  // Cosine scores are quotients and additive codes have no parts: both are decoded and packed whole.
  std::optional<CodewordTables> own_codewords;
  std::optional<ProductPanels> panels;
  std::optional<ResidualQueries> residuals;
  std::optional<ListCollector::Correction> correction;
  if (args.codec.encoding == ListEncoding::pq && args.metric != Metric::cosine) {
    panels.emplace(cpu, args.codec, codewords_of(cpu, args, own_codewords), packed.kernel, args.metric,
                   args.centre);
    residuals.emplace(cpu, args);
    correction = {&*panels, &queries};
  }
  const Products products = products_of(packed.kernel.base_encoding);
  const ListBound bound =
      panels ? ListBound(args.metric, products, packed.dim, panels->longest(), residuals->squares.span())
             : ListBound(args.metric, products, packed.dim);
  ListCollector found(cpu, packed.lengths.span(), args, numbers, bound, ScoreForm::packed, correction);
  const Probes probes(
      args, residuals ? std::span<const float>(residuals->offsets.span()) : std::span<const float>());

  std::vector<Block> blocks;
  for (std::size_t list = 0; list < args.lists.size(); ++list) {
    if (probes.of(list).queries.empty()) continue;
    for (std::size_t first = 0; first < args.lists[list].rows; first += max_block_rows)
      blocks.push_back({list, first, std::min(max_block_rows, args.lists[list].rows - first)});
  }
  // At most 16 tasks per thread: each allocates scratch memory.
  const std::size_t tasks =
      std::min<std::size_t>(blocks.size(), 16 * static_cast<std::size_t>(cpu.threads().count()));
  cpu.threads().for_each(tasks, [&](std::size_t task) {
    BlockScan scan(cpu, args, packed.kernel, queries, numbers, panels ? &*panels : nullptr, found);
    for (std::size_t i = blocks.size() * task / tasks; i < blocks.size() * (task + 1) / tasks; ++i)
      scan.scan(blocks[i], probes.of(blocks[i].list));
  });
  cpu.threads().for_each(divide_up(packed.rows, task_queries), [&](std::size_t task) {
    cpu.context.cancel.check();
    found.finish(task * task_queries, std::min(packed.rows, (task + 1) * task_queries));
  });
}

}  // namespace nearwise::cpu

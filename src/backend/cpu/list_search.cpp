// Search in inverted lists: every list is decoded and packed once, and scanned for all queries that probe it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backend/cpu/choose_scan.h"
#include "backend/cpu/list_collector.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/prepared_rows.h"
#include "core/checked.h"

namespace nearwise::cpu {
namespace {

// Rows of a list that are decoded and packed at a time: with as many queries they stay in the second cache.
constexpr std::size_t most_block_rows = 1024;
// Queries that are put together for a block at a time.
constexpr std::size_t most_group_queries = 256;
// Entries of a list while a block is scanned, beyond a panel of rows.
constexpr std::size_t scan_spare = 48;
constexpr std::size_t store_slack = 16;  // entries that a vector store may write behind a list

// The packed queries once more, row by row, so that panels of any of them can be put together.
class QueryRows {
 public:
  QueryRows(CpuStream& cpu, const PackedRows& packed)
      : packed_(packed), units_(packed.row_bytes / 4), values_(cpu.budget(), packed.rows * units_) {
    for (std::size_t query = 0; query < packed.rows; ++query) {
      const std::byte* const panel = packed.panel(query / packed.width);
      for (std::size_t unit = 0; unit < units_; ++unit)
        std::memcpy(&values_[query * units_ + unit], panel + (unit * packed.width + query % packed.width) * 4,
                    4);
    }
  }
  static std::uint64_t bytes_per_query(const ScanKernel& scan, std::size_t dim) {
    return encoded_row_bytes(scan, dim);
  }

  // Fills panels with these queries, and what is left of the last with zeros.
  void gather(std::span<const std::uint32_t> queries, std::byte* panels) const {
    const std::size_t width = packed_.width;
    for (std::size_t first = 0; first < queries.size(); first += width) {
      auto* const out = reinterpret_cast<std::uint32_t*>(panels + first * packed_.row_bytes);
      for (std::size_t i = 0; i < width; ++i) {
        if (first + i >= queries.size()) {
          for (std::size_t unit = 0; unit < units_; ++unit) out[unit * width + i] = 0;
          continue;
        }
        const std::uint32_t* const row = values_.data() + queries[first + i] * units_;
        for (std::size_t unit = 0; unit < units_; ++unit) out[unit * width + i] = row[unit];
      }
    }
  }

 private:
  const PackedRows& packed_;
  const std::size_t units_;
  Buffer<std::uint32_t> values_;  // [queries, units]
};

// Queries by the list they probe.
struct Probes {
  std::vector<std::size_t> ends;       // [lists]
  std::vector<std::uint32_t> queries;  // those of a list in ascending order

  static std::uint64_t bytes(std::size_t lists, std::size_t probes) {
    return lists * sizeof(std::size_t) + probes * sizeof(std::uint32_t);
  }
  explicit Probes(const ListSearchArgs& args) : ends(args.lists.size()) {
    for (const Id list : args.probes)
      if (list != no_id) ++ends[static_cast<std::size_t>(list)];
    std::size_t sum = 0;
    for (std::size_t& end : ends) end = (sum += end) - end;  // where its queries begin
    queries.resize(sum);
    for (std::size_t i = 0; i < args.probes.size(); ++i) {
      if (args.probes[i] == no_id) continue;
      queries[ends[static_cast<std::size_t>(args.probes[i])]++] =
          static_cast<std::uint32_t>(i / args.probe_count());
    }
  }
  std::span<const std::uint32_t> of(std::size_t list) const {
    const std::size_t begin = list == 0 ? 0 : ends[list - 1];
    return {queries.data() + begin, ends[list] - begin};
  }
};

struct Block {
  std::size_t list;
  std::size_t first;  // row of the list
  std::size_t rows;
};

// Scans blocks, one after the other. Not shared by threads.
class BlockScan {
 public:
  BlockScan(CpuStream& cpu, const ListSearchArgs& args, const ScanKernel& scan, const QueryRows& queries,
            const ListNumbers& numbers, ListCollector& found)
      : cpu_(cpu),
        args_(args),
        scan_(scan),
        queries_(queries),
        numbers_(numbers),
        found_(found),
        row_bytes_(args.codec.dim * element_size(args.codec.type)),
        capacity_(scan_spare + scan.base_width),
        stride_(capacity_ + store_slack),
        panels_(cpu.budget(), group_size(scan) * encoded_row_bytes(scan, args.codec.dim)),
        decoded_(cpu.budget(), args.codec.is_product() ? most_block_rows * row_bytes_ : 0),
        scores_(cpu.budget(), group_size(scan) * stride_),
        rows_(cpu.budget(), group_size(scan) * stride_),
        counts_(cpu.budget(), group_size(scan)),
        cutoffs_(cpu.budget(), group_size(scan)) {}

  static std::size_t group_size(const ScanKernel& scan) {
    return round_up(most_group_queries, scan.query_width);
  }
  static std::uint64_t bytes(const ScanKernel& scan, const ListSearchShape& shape) {
    const std::size_t entries = scan_spare + scan.base_width + store_slack;
    return group_size(scan) * (encoded_row_bytes(scan, shape.dim) + entries * 8 + 8) +
           most_block_rows * (shape.dim * element_size(shape.row_type) +
                              PackedRows::bytes_per_row(scan, RowsRole::base, shape.dim)) +
           PackedRows::scratch_bytes(scan, shape.dim) + 1024;
  }

  void scan(const Block& block, std::span<const std::uint32_t> queries) {
    cpu_.context.cancel.check();
    const ListView& list = args_.lists[block.list];
    const std::byte* rows = list.codes + block.first * row_bytes_;
    if (args_.codec.is_product()) {
      decode_rows(args_.codec, list, block.list, block.first, block.rows, decoded_.data());
      rows = decoded_.data();
    }
    const PrepareArgs prepare = {.rows = {rows, args_.codec.type, block.rows, args_.codec.dim, row_bytes_},
                                 .role = RowsRole::base,
                                 .against = args_.queries.type(),
                                 .metric = args_.metric,
                                 .centre = args_.centre};
    PackedRows packed(cpu_.budget(), scan_, RowsRole::base, block.rows, args_.codec.dim);
    PanelPacker packer(cpu_, prepare, packed);
    for (std::size_t panel = 0; panel < packed.panel_count(); ++panel) packer.pack(panel);
    longest_ = packer.longest();
    first_row_ = numbers_.first(block.list) + static_cast<std::uint32_t>(block.first);
    for (std::size_t first = 0; first < queries.size(); first += group_size(scan_))
      scan_group(packed, queries.subspan(first, std::min(group_size(scan_), queries.size() - first)));
  }

 private:
  void scan_group(const PackedRows& packed, std::span<const std::uint32_t> queries) {
    group_ = queries;
    queries_.gather(queries, panels_.data());
    const std::size_t places = round_up(queries.size(), scan_.query_width);
    for (std::size_t i = 0; i < places; ++i) {
      counts_[i] = 0;
      cutoffs_[i] =
          i < queries.size() ? found_.cutoff(queries[i], longest_) : std::numeric_limits<float>::quiet_NaN();
    }
    const bool integers = is_integer(scan_.base_encoding);
    scan_.scan(
        {.query_panels = panels_.data(),
         .query_panel_count = places / scan_.query_width,
         .first_query = 0,
         .base_panels = packed.panel(0),
         .biases = integers ? nullptr : packed.biases.data(),
         .integer_biases = integers ? packed.integer_biases.data() : nullptr,
         .half_biases = integers ? packed.half_biases.data() : nullptr,
         .base_panel_count = packed.panel_count(),
         .first_row = first_row_,
         .end_row = first_row_ + static_cast<std::uint32_t>(packed.rows),
         .row_bytes = packed.row_bytes,
         .lists = {scores_.data(), rows_.data(), counts_.data(), cutoffs_.data(), stride_, capacity_},
         .make_room = [](void* owner, std::size_t query) { static_cast<BlockScan*>(owner)->flush(query); },
         .owner = this});
    for (std::size_t i = 0; i < queries.size(); ++i) {
      if (counts_[i] != 0) hand_over(i);
      if (std::isnan(cutoffs_[i])) found_.evaluate(queries[i], first_row_, packed.rows);
    }
  }

  void hand_over(std::size_t i) {
    found_.add(group_[i], longest_, {scores_.data() + i * stride_, counts_[i]},
               {rows_.data() + i * stride_, counts_[i]});
    counts_[i] = 0;
  }
  void flush(std::size_t i) {
    hand_over(i);
    cutoffs_[i] = found_.cutoff(group_[i], longest_);
  }

  CpuStream& cpu_;
  const ListSearchArgs& args_;
  const ScanKernel& scan_;
  const QueryRows& queries_;
  const ListNumbers& numbers_;
  ListCollector& found_;
  const std::size_t row_bytes_;
  const std::size_t capacity_;
  const std::size_t stride_;
  Buffer<std::byte> panels_;   // of a group of queries
  Buffer<std::byte> decoded_;  // rows of a block
  // Lists of a group.
  Buffer<float> scores_;
  Buffer<std::uint32_t> rows_;
  Buffer<std::uint32_t> counts_;
  Buffer<float> cutoffs_;
  // Of the block that is being scanned.
  Lengths longest_;
  std::uint32_t first_row_ = 0;
  std::span<const std::uint32_t> group_;
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
                             shape.probes * sizeof(std::uint32_t),
          .fixed_bytes = 4096 + static_cast<std::uint64_t>(cpu.threads().count()) * per_thread +
                         ListNumbers::bytes(shape.lists, shape.rows) + Probes::bytes(shape.lists, 0)};
}

void list_search(Stream& stream, const ListSearchArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const ListNumbers numbers(args.lists);
  const Probes probes(args);
  const PrepareArgs prepare = {.rows = args.queries,
                               .role = RowsRole::queries,
                               .against = args.codec.type,
                               .metric = args.metric,
                               .centre = args.centre};
  const auto prepared = prepare_rows(stream, prepare);
  const auto& packed = static_cast<const PackedRows&>(*prepared);
  const QueryRows queries(cpu, packed);
  ListCollector found(cpu, packed, args, numbers);

  std::vector<Block> blocks;
  for (std::size_t list = 0; list < args.lists.size(); ++list) {
    if (probes.of(list).empty()) continue;
    for (std::size_t first = 0; first < args.lists[list].rows; first += most_block_rows)
      blocks.push_back({list, first, std::min(most_block_rows, args.lists[list].rows - first)});
  }
  // A few tasks per thread: each has scratch memory of its own.
  const std::size_t tasks =
      std::min<std::size_t>(blocks.size(), 16 * static_cast<std::size_t>(cpu.threads().count()));
  cpu.threads().for_each(tasks, [&](std::size_t task) {
    BlockScan scan(cpu, args, packed.kernel, queries, numbers, found);
    for (std::size_t i = blocks.size() * task / tasks; i < blocks.size() * (task + 1) / tasks; ++i)
      scan.scan(blocks[i], probes.of(blocks[i].list));
  });
  constexpr std::size_t task_queries = 64;
  cpu.threads().for_each(divide_up(packed.rows, task_queries), [&](std::size_t task) {
    cpu.context.cancel.check();
    const std::size_t end = std::min(packed.rows, (task + 1) * task_queries);
    for (std::size_t query = task * task_queries; query < end; ++query) found.finish(query);
  });
}

}  // namespace nearwise::cpu

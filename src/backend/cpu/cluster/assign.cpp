// Nearest base vector of every query: a scan that keeps the two best scores, and an exact search where they
// are too close.
//
// A query is decided if the error bound separates its second score from the best: the vector of the best
// score is then strictly nearest. The other queries, a few percent of typical data, are gathered in batches
// and searched with candidate lists, whose limits are known in advance, so that few vectors pass.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "backend/cpu/cluster/assign_short.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/rows/choose_scan.h"
#include "backend/cpu/rows/prepared_rows.h"
#include "backend/cpu/rows/row_evaluator.h"
#include "backend/cpu/rows/scan_cut.h"
#include "backend/cpu/rows/top_k.h"
#include "backend/cpu/stream.h"
#include "core/checked.h"
#include "core/convert.h"
#include "core/distance.h"
#include "core/progress.h"

namespace nearwise::cpu {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Panels of undecided queries per search: enough to reuse a block in cache.
constexpr std::size_t batch_panels = 8;

// Two best scores of a task's queries, padded to whole panels.
struct TwoBest {
  TwoBest(MemoryBudget& budget, std::size_t queries)
      : best(budget, queries), second(budget, queries), rows(budget, queries) {
    std::ranges::fill(best.span(), infinity);
    std::ranges::fill(second.span(), infinity);
    std::ranges::fill(rows.span(), 0U);
  }
  static std::uint64_t bytes(std::size_t queries) {
    return 2 * buffer_bytes(queries, sizeof(float)) + buffer_bytes(queries, sizeof(std::uint32_t));
  }

  Buffer<float> best;
  Buffer<float> second;
  Buffer<std::uint32_t> rows;
};

// Base vectors in f64, used as queries of the distance kernels. Reported distances are symmetric: differences
// are squared, and products and norms commute.
class WideBase {
 public:
  WideBase(CpuStream& cpu, const RowsView& base, const RowsView& queries, Metric metric)
      : queries_(queries),
        metric_(metric),
        rows_(cpu.budget(), base.rows() * base.dim()),
        norms_(cpu.budget(), metric == Metric::cosine ? base.rows() : 0) {
    const auto type = static_cast<std::size_t>(queries.type());
    const RowDistanceKernels& kernels = cpu.row_distance;
    function_ = is_euclidean(metric)              ? kernels.difference[type]
                : metric == Metric::inner_product ? kernels.product[type]
                                                  : kernels.product_and_norm[type];
    constexpr std::size_t task_rows = 1024;
    cpu.threads().for_each(divide_up(base.rows(), task_rows), [&](std::size_t task) {
      cpu.context.cancel.check();
      const std::size_t end = std::min(base.rows(), (task + 1) * task_rows);
      for (std::size_t row = task * task_rows; row < end; ++row) {
        row_to_double(base, row, rows_.data() + row * base.dim());
        double unused = 0;
        if (metric == Metric::cosine)
          kernels.product_and_norm[static_cast<std::size_t>(base.type())](
              {.query = rows_.data() + row * base.dim(),
               .base = base.row(row),
               .dim = base.dim(),
               .count = 1,
               .sums = &unused,
               .norms = &norms_[row]});
      }
    });
  }
  static std::uint64_t bytes_per_row(std::size_t dim) { return (dim + 1) * sizeof(double); }

  float distance(std::size_t query, std::size_t row) const {
    double sum = 0;
    double norm = 0;
    function_({.query = rows_.data() + row * queries_.dim(),
               .base = queries_.row(query),
               .dim = queries_.dim(),
               .count = 1,
               .sums = &sum,
               .norms = &norm});
    return reported(metric_, sum, metric_ == Metric::cosine ? norms_[row] : 0, norm);
  }

 private:
  const RowsView queries_;
  const Metric metric_;
  Buffer<double> rows_;   // [base rows, dim]
  Buffer<double> norms_;  // [base rows] cosine only
  RowDistanceKernels::Function function_ = nullptr;
};

struct Undecided {
  std::size_t query = 0;
  double limit = 0;  // vectors with a larger value are not the nearest
};

std::uint64_t batch_bytes(const ScanKernel& kernel, std::size_t dim, std::size_t element_bytes) {
  const std::size_t queries = batch_panels * kernel.query_width;
  const std::size_t spare = TopK::default_spare(1);
  return queries * (PackedRows::bytes_per_row(kernel, RowsRole::queries, dim) + dim * element_bytes +
                    TopK::bytes_per_query(1, kernel.base_width, spare)) +
         PackedRows::scratch_bytes(kernel, dim) + RowEvaluator::bytes(dim) +
         buffer_bytes(spare + kernel.base_width, sizeof(std::int64_t)) + 1024;
}

class Assignment {
 public:
  Assignment(CpuStream& cpu, const AssignArgs& args)
      : cpu_(cpu),
        args_(args),
        queries_(static_cast<const PackedRows&>(args.queries)),
        block_(static_cast<const PackedRows&>(args.block)),
        bound_(args.metric, products_of(block_.kernel.base_encoding), block_.dim) {
    if (!args.distances.empty()) wide_.emplace(cpu, args.base, args.query_rows, args.metric);
  }

  void run() const {
    const std::size_t panels = group_panels(queries_, cpu_.threads().count());
    cpu_.threads().for_each(divide_up(queries_.panel_count(), panels), [&](std::size_t group) {
      const std::size_t first_panel = group * panels;
      const std::size_t panel_count = std::min(panels, queries_.panel_count() - first_panel);
      const std::size_t first = first_panel * queries_.width;
      const std::size_t count = std::min(panel_count * queries_.width, queries_.rows - first);
      if (block_.rows == 1)
        std::ranges::fill(args_.nearest.subspan(first, count), 0U);
      else
        find(first_panel, panel_count, count);
      for (std::size_t query = first; wide_ && query < first + count; ++query)
        args_.distances[query] = wide_->distance(query, args_.nearest[query]);
      if (args_.progress != nullptr) args_.progress->add(count * block_.rows);
    });
  }

 private:
  // count: queries in these panels, without padding.
  void find(std::size_t first_panel, std::size_t panel_count, std::size_t count) const {
    const std::vector<Undecided> undecided = block_.kernel.scan_nearest != nullptr
                                                 ? scan(first_panel, panel_count, count)
                                                 : all_of(first_panel * queries_.width, count);
    const std::size_t batch = batch_panels * queries_.width;
    for (std::size_t i = 0; i < undecided.size(); i += batch)
      search({undecided.data() + i, std::min(batch, undecided.size() - i)});
  }

  static std::vector<Undecided> all_of(std::size_t first, std::size_t count) {
    std::vector<Undecided> all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = {first + i, std::numeric_limits<double>::infinity()};
    return all;
  }

  // Writes the nearest vectors of decided queries and returns the others.
  std::vector<Undecided> scan(std::size_t first_panel, std::size_t panel_count, std::size_t count) const {
    TwoBest found(cpu_.budget(), panel_count * queries_.width);
    for_each_step(panel_count, [&](std::size_t panel, std::size_t panels) {
      block_.kernel.scan_nearest({.query_panels = queries_.panel(first_panel),
                                  .query_panel_count = panel_count,
                                  .base_panels = block_.panel(panel),
                                  .biases = block_.biases.data() + panel * block_.width,
                                  .base_panel_count = panels,
                                  .first_row = static_cast<std::uint32_t>(panel * block_.width),
                                  .row_bytes = block_.row_bytes,
                                  .best = found.best.data(),
                                  .second = found.second.data(),
                                  .rows = found.rows.data()});
    });
    std::vector<Undecided> undecided;
    const std::size_t first = first_panel * queries_.width;
    for (std::size_t i = 0; i < count; ++i) {
      const Lengths& query = queries_.lengths[first + i];
      double limit = std::numeric_limits<double>::infinity();
      if (ScoreBound::holds_for(query, block_.longest)) {
        limit = bound_.limit_from_score(query, block_.longest, found.best[i]);
        if (found.second[i] > bound_.cutoff(query, block_.longest, limit)) {
          args_.nearest[first + i] = found.rows[i];
          continue;
        }
      }
      undecided.push_back({first + i, limit});
    }
    return undecided;
  }

  // Calls step(first panel, panels) for parts of the block; checks the cancel flag before each.
  template <typename Step>
  void for_each_step(std::size_t query_panels, const Step& step) const {
    const std::size_t panels = step_panels(block_, query_panels * queries_.width);
    for (std::size_t first = 0; first < block_.panel_count(); first += panels) {
      cpu_.context.cancel.check();
      step(first, std::min(panels, block_.panel_count() - first));
    }
  }

  // Exact search for a batch of scattered queries.
  void search(std::span<const Undecided> undecided) const {
    const std::size_t row_bytes = args_.query_rows.dim() * element_size(args_.query_rows.type());
    Buffer<std::byte> gathered(cpu_.budget(), undecided.size() * row_bytes);
    for (std::size_t i = 0; i < undecided.size(); ++i)
      std::memcpy(gathered.data() + i * row_bytes, args_.query_rows.row(undecided[i].query), row_bytes);
    const RowsView rows(gathered.data(), args_.query_rows.type(), undecided.size(), args_.query_rows.dim(),
                        row_bytes);
    PackedRows packed(cpu_.budget(), queries_.kernel, RowsRole::queries, undecided.size(), queries_.dim);
    const PrepareArgs prepare = {
        .rows = rows, .role = RowsRole::queries, .metric = args_.metric, .centre = args_.centre};
    PanelPacker packer(cpu_, prepare, packed);
    for (std::size_t panel = 0; panel < packed.panel_count(); ++panel) packer.pack(panel);
    TopK found(cpu_, packed, rows, 1, args_.metric, TopK::default_spare(1));
    found.begin_block(args_.base, block_.longest);
    for (std::size_t i = 0; i < undecided.size(); ++i) found.lower_limit(i, undecided[i].limit);
    scan_lists(packed, found);
    AnswerSorter sorter(cpu_.budget(), found.sorter_size());
    for (std::size_t i = 0; i < undecided.size(); ++i) {
      if (!found.scores_hold(i)) found.evaluate_range(i, 0, block_.rows);
      args_.nearest[undecided[i].query] = found.finish(i, sorter)[0].row;
    }
  }

  void scan_lists(const PackedRows& packed, Candidates& found) const {
    const bool integers = is_integer(block_.kernel.base_encoding);
    for_each_step(packed.panel_count(), [&](std::size_t panel, std::size_t panels) {
      const std::size_t place = panel * block_.width;
      block_.kernel.scan({.query_panels = packed.panel(0),
                          .query_panel_count = packed.panel_count(),
                          .first_query = 0,
                          .base_panels = block_.panel(panel),
                          .biases = integers ? nullptr : block_.biases.data() + place,
                          .integer_biases = integers ? block_.integer_biases.data() + place : nullptr,
                          .half_biases = integers ? block_.half_biases.data() + place : nullptr,
                          .base_panel_count = panels,
                          .first_row = static_cast<std::uint32_t>(place),
                          .end_row = static_cast<std::uint32_t>(block_.rows),
                          .row_bytes = block_.row_bytes,
                          .lists = found.lists(),
                          .make_room = Candidates::make_room_of,
                          .owner = &found});
    });
  }

  CpuStream& cpu_;
  const AssignArgs& args_;
  const PackedRows& queries_;
  const PackedRows& block_;
  const ScoreBound bound_;
  std::optional<WideBase> wide_;  // if distances are requested
};

}  // namespace

AssignCosts assign_costs(const Stream& stream, const KnnCostsArgs& args) {
  const CpuStream& cpu = cpu_stream(stream);
  const ScanKernel scan = choose_scan(cpu.set, args.metric, args.query_type, args.base_type, args.dim);
  const std::size_t panel_bytes = encoded_row_bytes(scan, args.dim) * scan.query_width;
  const std::size_t group = std::max<std::size_t>(1, scan.query_group_bytes / panel_bytes) * scan.query_width;
  const std::uint64_t per_thread =
      TwoBest::bytes(group) + batch_bytes(scan, args.dim, element_size(args.query_type));
  const std::uint64_t short_bytes =
      may_be_short(args.dim, args.metric, args.base_type) ? assign_short_bytes(args.dim) : 0;
  return {.bytes_per_query = PackedRows::bytes_per_row(scan, RowsRole::queries, args.dim),
          .bytes_per_base_row = PackedRows::bytes_per_row(scan, RowsRole::base, args.dim),
          .distance_bytes_per_base_row = WideBase::bytes_per_row(args.dim),
          // 2048: alignment of a dozen buffers.
          .fixed_bytes = 2048 + short_bytes + static_cast<std::uint64_t>(cpu.threads().count()) * per_thread,
          .query_granule = scan.query_width,
          .base_granule = scan.base_width};
}

void assign(Stream& stream, const AssignArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  if (!assign_short(cpu, args)) Assignment(cpu, args).run();
}

}  // namespace nearwise::cpu

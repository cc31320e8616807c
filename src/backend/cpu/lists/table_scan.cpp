#include "backend/cpu/lists/table_scan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "backend/cpu/kernels/prefetch.h"
#include "backend/cpu/x86/scans.h"
#include "codes/code_norms.h"
#include "codes/codeword_tables.h"
#include "core/convert.h"
#include "core/distance.h"

namespace nearwise::cpu {
namespace {

// Vectors of a list scanned for a first limit.
constexpr std::size_t max_first_rows = 2048;
// Tables with a smaller range of values are not quantized to bytes.
constexpr double min_width = 1e-30;
// Byte tables are rebuilt at a finer scale when the threshold falls below this.
constexpr double min_range = 80;
// Prefetch distance in vectors. Lists are short, and the hardware prefetcher detects the next one too late.
constexpr std::size_t prefetched_rows = 512;

}  // namespace

bool TableScan::has_registers(const CpuStream& cpu) {
  return cpu.set.extension >= Extension::integer_dots && x86::features().byte_tables;
}

TableScan::TableScan(CpuStream& cpu, const ListSearchArgs& args, const CodewordTables& codewords,
                     const ListNumbers& numbers, const ListBound& bound, ListCollector& found)
    : cpu_(cpu),
      args_(args),
      codewords_(codewords),
      numbers_(numbers),
      bound_(bound),
      found_(found),
      kernels_(part_sums_kernels(cpu.set)),
      parts_(args.codec.parts()),
      codewords_per_part_(std::size_t{1} << args.codec.bits),
      with_bytes_(has_registers(cpu) && parts_ <= 256),
      with_norms_(CodeNorms::are_needed(args.codec, args.metric)),
      longest_(1.001 * (codewords.longest_centroid() + codewords.longest_codewords())),
      longest_codewords_{.norm = codewords.longest_codewords(), .residual = 0},
      query_(cpu.budget(), args.codec.dim),
      negated_(cpu.budget(), args.codec.dim),
      offsets_(cpu.budget(), args.probe_count()),
      lists_(cpu.budget(), args.probe_count()),
      tables_(cpu.budget(), parts_ * codewords_per_part_),
      minima_(cpu.budget(), parts_),
      bytes_(cpu.budget(), with_bytes_ ? parts_ * codewords_per_part_ : 0),
      sums_(cpu.budget(), with_bytes_ ? max_first_rows : 0) {}

void TableScan::scan_query(std::size_t query, std::size_t first, std::size_t step) {
  index_ = query;
  const std::size_t probes = args_.probe_count();
  for (std::size_t row = 0; row < prefetched_rows; row += block_rows) prefetch_block(first, row);
  row_to_double(args_.queries, query, query_.data());
  for (std::size_t i = 0; i < args_.centre.size(); ++i) query_[i] -= args_.centre[i];
  if (args_.metric == Metric::cosine) {
    const double length = std::sqrt(squares_of(query_.span()));
    if (length > 0)
      for (double& value : query_.span()) value /= length;
  }
  for (std::size_t i = 0; i < query_.size(); ++i) negated_[i] = -static_cast<float>(query_[i]);
  fill_tables();
  fill_offsets();
  // Nearest lists first: they lower the limit for the others.
  for (std::size_t probe = first; probe < probes; probe += step) scan(probe, probe + step);
}

void TableScan::fill_tables() {
  std::ranges::fill(tables_.span(), 0.0F);
  for (std::size_t part = 0; part < parts_; ++part) {
    float* const table = tables_.data() + part * codewords_per_part_;
    kernels_.add_products({.columns = codewords_.columns().data() + args_.codec.codewords_begin(part),
                           .start = table,
                           .vector = negated_.data() + args_.codec.part_begin(part),
                           .dim = args_.codec.part_size(part),
                           .codewords = codewords_per_part_,
                           .table = table});
  }
  scale_ = 0;
  if (with_bytes_) range_ = x86::measure_tables(tables_.data(), parts_, codewords_per_part_, minima_.data());
}

// -q'c' = q' * centre - q'c.
void TableScan::fill_offsets() {
  double with_centre = 0;
  for (std::size_t i = 0; i < args_.centre.size(); ++i) with_centre += query_[i] * args_.centre[i];
  const std::size_t probes = lists_.size();
  const Id* const probed = args_.probes.data() + index_ * probes;
  for (std::size_t i = 0; i < probes; ++i)
    lists_[i] = probed[i] == no_id ? 0 : static_cast<std::uint32_t>(probed[i]);
  const RowsView centroids = args_.codec.centroids;
  cpu_.row_distance.product[static_cast<std::size_t>(ElementType::f32)](
      {.query = query_.data(),
       .base = centroids.data(),
       .stride_bytes = centroids.stride_bytes(),
       .dim = query_.size(),
       .rows = lists_.data(),
       .count = probes,
       .sums = offsets_.data()});
  for (double& offset : offsets_.span()) offset = with_centre - offset;
}

void TableScan::prefetch_block(std::size_t probe, std::size_t first) const {
  if (probe >= args_.probe_count()) return;
  const Id list = args_.probes[index_ * args_.probe_count() + probe];
  if (list == no_id) return;
  const ListView& view = args_.lists[static_cast<std::size_t>(list)];
  if (first >= view.rows) return;
  const std::size_t rows = std::min(block_rows, view.rows - first);
  prefetch(reinterpret_cast<std::uintptr_t>(view.codes + first * args_.codec.code_bytes),
           rows * args_.codec.code_bytes);
  if (args_.norms.empty()) return;
  const float* const norms = args_.norms[static_cast<std::size_t>(list)].load(std::memory_order_acquire);
  if (norms == nullptr) return;
  prefetch(reinterpret_cast<std::uintptr_t>(norms + first), rows * sizeof(float));
  if (first == 0) prefetch(reinterpret_cast<std::uintptr_t>(norms + view.rows), sizeof(float));
}

void TableScan::scan(std::size_t probe, std::size_t next) {
  const Id id = args_.probes[index_ * args_.probe_count() + probe];
  if (id == no_id) return;
  const auto list = static_cast<std::size_t>(id);
  const ListView& view = args_.lists[list];
  if (view.rows == 0) return;
  cpu_.context.cancel.check();
  cutoff_ = found_.cutoff(index_, longest_codewords_);
  if (std::isnan(cutoff_)) {
    found_.evaluate(index_, numbers_.first(list), view.rows);
    return;
  }
  offset_ = static_cast<float>(offsets_[probe]);
  begin_list(list);
  if (cutoff_ == std::numeric_limits<float>::max()) find_limit(view);
  set_threshold();
  std::size_t first = 0;
  for (; first < view.rows && pass_ != Pass::none; first += block_rows) {
    const std::size_t ahead = first + prefetched_rows;
    if (ahead < view.rows)
      prefetch_block(probe, ahead);
    else
      prefetch_block(next, (ahead - view.rows) / block_rows * block_rows);
    scan_block(view, first, numbers_.first(list));
  }
  flush_candidates();
}

void TableScan::begin_list(std::size_t list) {
  summed_ = 0;
  norms_ = nullptr;
  min_norm_ = 0;
  if (!with_norms_) return;
  if (!args_.norms.empty()) norms_ = args_.norms[list].load(std::memory_order_acquire);
  if (norms_ != nullptr) {
    min_norm_ = norms_[args_.lists[list].rows];
    return;
  }
  if (!own_norms_) own_norms_.emplace(cpu_.budget(), args_.codec, codewords_, args_.metric, args_.centre);
  own_norms_->begin_list(list);
}

const float* TableScan::norms_of(const ListView& view, std::size_t first) {
  if (!with_norms_) return nullptr;
  if (norms_ != nullptr) return norms_ + first;
  own_norms_->fill(view.codes + first * args_.codec.code_bytes, std::min(block_rows, view.rows - first),
                   block_norms_);
  return block_norms_;
}

void TableScan::fill_bytes(double widest) {
  scale_ = static_cast<float>(255 / widest);
  summed_ = 0;
  x86::fill_byte_tables(tables_.data(), minima_.data(), parts_, codewords_per_part_, scale_, bytes_.data());
}

// Weight of the norm t in the comparison with the cutoff: a cosine score passes if -qc - qr <= cutoff * t.
double TableScan::factor() const {
  if (cutoff_ == std::numeric_limits<float>::max())
    return args_.metric == Metric::cosine || !with_norms_ ? 0 : 1;
  return args_.metric == Metric::cosine ? -static_cast<double>(cutoff_) : with_norms_ ? 1 : 0;
}

// Upper bound of the f32 rounding error of a score: more than twice that of the sum over parts.
double TableScan::rounding_error() const {
  const double norm = args_.metric == Metric::cosine ? longest_ : longest_ * longest_ / 2;
  return static_cast<double>(parts_ + 8) * 0x1p-22 *
         (range_.magnitude + std::abs(static_cast<double>(offset_)) + std::abs(factor()) * norm);
}

x86::CodeScanArgs TableScan::codes_of(const ListView& view, std::size_t first, const float* norms) const {
  return {.codes = view.codes + first * args_.codec.code_bytes,
          .code_bytes = args_.codec.code_bytes,
          .rows = std::min(block_rows, view.rows - first),
          .tables = bytes_.data(),
          .parts = parts_,
          .bits = args_.codec.bits,
          .norms = norms,
          .min_norm = min_norm_,
          .norm_scale = static_cast<float>(factor() * scale_),
          .threshold = threshold_};
}

// Finds a first limit; without one all vectors would be candidates. The exact sum of entries and norm exceeds
// the sum of their bytes by less than one unit each, so the k-th sum of bytes bounds the k-th score.
void TableScan::find_limit(const ListView& view) {
  const std::size_t rows = std::min(view.rows, max_first_rows) / block_rows * block_rows;
  if (!with_bytes_ || rows < found_.wanted(index_) || range_.widest < min_width) return;
  if (scale_ == 0) fill_bytes(range_.widest);
  const bool cosine = args_.metric == Metric::cosine;
  for (std::size_t first = 0; first < rows; first += block_rows)
    x86::sum_codes(codes_of(view, first, cosine ? nullptr : norms_of(view, first)), sums_.data() + first);
  const double score =
      cosine ? kth_quotient(view, rows) : max_score(x86::kth_sum(sums_.data(), rows, found_.wanted(index_)));
  summed_ = cosine ? 0 : rows;
  if (!(score < std::numeric_limits<float>::max())) return;
  found_.limit_score(index_, longest_codewords_, score);
  cutoff_ = found_.cutoff(index_, longest_codewords_);
}

// Upper bound of the score, without the cosine division, given the sum of bytes.
double TableScan::max_score(std::uint16_t sum) const {
  if (sum == 0xFFFF) return std::numeric_limits<double>::infinity();  // saturated
  // Bytes are truncated, possibly after rounding down.
  const double above = (sum + static_cast<double>(parts_ + 2)) * (1 + 0x1p-20) / scale_;
  return offset_ + range_.least + factor() * min_norm_ + above + rounding_error();
}

// For cosine, sums hold table entries only; scores are their quotients by the norms.
double TableScan::kth_quotient(const ListView& view, std::size_t rows) {
  std::vector<float> scores(rows);
  for (std::size_t first = 0; first < rows; first += block_rows) {
    const float* const norms = norms_of(view, first);
    for (std::size_t i = 0; i < block_rows; ++i) {
      const std::uint16_t sum = sums_[first + i % 2 * (block_rows / 2) + i / 2];
      scores[first + i] = norms[i] >= bound_.min_row_length()
                              ? static_cast<float>(max_score(sum) / static_cast<double>(norms[i]))
                              : std::numeric_limits<float>::max();
    }
  }
  return cpu_.candidate_list.kth_score(scores.data(), rows, found_.wanted(index_));
}

// If a score is within the cutoff, the sum of its entries and norm exceeds the minimum by at most `room`.
// Bytes are truncated, so their sum is at most room * scale plus rounding errors: rounding_error() for the
// score, the added 2 and the factor 1 + 2^-20 for the bytes.
void TableScan::set_threshold() {
  pass_ = Pass::all;
  if (!with_bytes_ || cutoff_ == std::numeric_limits<float>::max() || factor() < 0) return;
  const double most = args_.metric == Metric::cosine ? bound_.product_error() : static_cast<double>(cutoff_);
  const double room = most - offset_ - range_.least - factor() * min_norm_ + rounding_error();
  if (room < 0) {
    pass_ = Pass::none;
    return;
  }
  if (scale_ == 0 || room * scale_ < min_range) {
    const double widest = std::min<double>(range_.widest, room);
    if (widest < min_width) return;
    fill_bytes(widest);
  }
  const double threshold = room * scale_ * (1 + 0x1p-20) + 2;
  if (threshold >= 0xFFFF) return;
  threshold_ = static_cast<std::uint16_t>(threshold);
  pass_ = Pass::some;
}

void TableScan::scan_block(const ListView& view, std::size_t first, std::uint32_t first_number) {
  const std::size_t rows = std::min(block_rows, view.rows - first);
  const std::byte* const codes = view.codes + first * args_.codec.code_bytes;
  const float* const norms = norms_of(view, first);
  std::uint64_t passed = rows == block_rows ? ~std::uint64_t{0} : (std::uint64_t{1} << rows) - 1;
  if (pass_ == Pass::some)
    passed = first < summed_ ? x86::rows_within(sums_.data() + first, threshold_)
                             : x86::scan_codes(codes_of(view, first, norms));
  for (; passed != 0; passed &= passed - 1) {
    const auto row = static_cast<std::size_t>(std::countr_zero(passed));
    score_row(codes + row * args_.codec.code_bytes, norms == nullptr ? 0 : norms[row],
              first_number + static_cast<std::uint32_t>(first + row));
  }
  // Continue if there is room for another block.
  if (count_ + block_rows <= std::size(scores_)) return;
  flush_candidates();
  cutoff_ = found_.cutoff(index_, longest_codewords_);
  set_threshold();
}

void TableScan::score_row(const std::byte* code, float norm, std::uint32_t number) {
  // Large numbers are added last to keep the rounding error small.
  const float sum = args_.codec.bits == 8 ? sum_entries<8>(tables_.data(), parts_, code, 0)
                                          : sum_entries<4>(tables_.data(), parts_, code, 0);
  float score = sum + (offset_ + norm);
  if (args_.metric == Metric::cosine) {
    if (!(norm >= bound_.min_row_length())) {
      found_.evaluate(index_, number, 1);
      return;
    }
    score = (sum + offset_) / norm;
  }
  if (!(score <= cutoff_)) return;
  scores_[count_] = score;
  rows_[count_++] = number;
}

void TableScan::flush_candidates() {
  if (count_ != 0)
    found_.add(index_, longest_codewords_, {scores_, count_}, {rows_, count_}, rows_[0], rows_[count_ - 1]);
  count_ = 0;
}

}  // namespace nearwise::cpu

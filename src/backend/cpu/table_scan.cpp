#include "backend/cpu/table_scan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "backend/cpu/x86/scans.h"
#include "core/convert.h"
#include "core/distance.h"

namespace nearwise::cpu {
namespace {

// Rows of a list among which a first limit is looked for.
constexpr std::size_t most_first_rows = 2048;
// Tables no wider than this have no bytes worth the name.
constexpr double least_width = 1e-30;

}  // namespace

bool TableScan::has_registers(const CpuStream& cpu) {
  return cpu.set.extension != Extension::none && x86::features().byte_tables;
}

TableScan::TableScan(CpuStream& cpu, const ListSearchArgs& args, const ProductWords& words,
                     const ListNumbers& numbers, ListCollector& found)
    : cpu_(cpu),
      args_(args),
      words_(words),
      numbers_(numbers),
      found_(found),
      kernels_(part_sums_kernels(cpu.set)),
      parts_(args.codec.parts()),
      table_words_(std::size_t{1} << args.codec.bits),
      with_bytes_(has_registers(cpu) && parts_ <= 256),
      query_(cpu.budget(), args.codec.dim),
      difference_(cpu.budget(), args.codec.dim),
      tables_(cpu.budget(), parts_ * table_words_),
      leasts_(cpu.budget(), parts_),
      bytes_(cpu.budget(), with_bytes_ ? parts_ * table_words_ : 0),
      sums_(cpu.budget(), with_bytes_ ? most_first_rows : 0) {}

void TableScan::begin_query(std::size_t query) {
  index_ = query;
  row_to_double(args_.queries, query, query_.data());
  if (is_euclidean(args_.metric)) return;
  for (std::size_t i = 0; i < query_.size(); ++i) difference_[i] = -static_cast<float>(query_[i]);
  fill_tables();
}

void TableScan::scan(std::size_t list) {
  const ListView& view = args_.lists[list];
  if (view.rows == 0) return;
  cpu_.context.cancel.check();
  cutoff_ = found_.cutoff(index_, {});
  if (std::isnan(cutoff_)) {
    found_.evaluate(index_, numbers_.first(list), view.rows);
    return;
  }
  begin_list(list);
  summed_ = 0;
  if (cutoff_ == std::numeric_limits<float>::max()) find_limit(view);
  set_threshold();
  for (std::size_t first = 0; first < view.rows && pass_ != Pass::none; first += block_rows)
    scan_block(view, first, numbers_.first(list));
  hand_over();
}

void TableScan::begin_list(std::size_t list) {
  const std::span<const float> centroid = args_.codec.centroids.row(list);
  double offset = 0;
  if (is_euclidean(args_.metric)) {
    for (std::size_t i = 0; i < query_.size(); ++i) {
      const double centre = args_.centre.empty() ? 0 : static_cast<double>(args_.centre[i]);
      const double shifted = centroid[i] - centre;
      offset += shifted * (shifted / 2 - (query_[i] - centre));
      difference_[i] = static_cast<float>(centroid[i] - query_[i]);
    }
    fill_tables();
  } else {
    for (std::size_t i = 0; i < query_.size(); ++i) offset -= query_[i] * centroid[i];
  }
  offset_ = static_cast<float>(offset);
  scale_ = 0;
}

void TableScan::fill_tables() {
  const bool squares = is_euclidean(args_.metric);
  if (!squares) std::ranges::fill(tables_.span(), 0.0F);
  for (std::size_t part = 0; part < parts_; ++part) {
    const std::size_t begin = args_.codec.part_begins[part];
    float* const table = tables_.data() + part * table_words_;
    kernels_.add_products({.columns = words_.columns().data() + begin * table_words_,
                           .start = squares ? words_.half_squares().data() + part * table_words_ : table,
                           .vector = difference_.data() + begin,
                           .dim = args_.codec.part_begins[part + 1] - begin,
                           .words = table_words_,
                           .table = table});
  }
  if (with_bytes_) range_ = x86::measure_tables(tables_.data(), parts_, table_words_, leasts_.data());
}

void TableScan::fill_bytes(double widest) {
  scale_ = static_cast<float>(255 / widest);
  x86::fill_byte_tables(tables_.data(), leasts_.data(), parts_, table_words_, scale_, bytes_.data());
}

// All that f32 may have rounded in a score: twice the parts' roundings, and more.
double TableScan::blur() const {
  return static_cast<double>(parts_ + 8) * 0x1p-22 *
         (range_.magnitude + std::abs(static_cast<double>(offset_)));
}

x86::CodeScanArgs TableScan::codes_of(const ListView& view, std::size_t first) const {
  return {.codes = view.codes + first * args_.codec.code_bytes,
          .code_bytes = args_.codec.code_bytes,
          .rows = std::min(block_rows, view.rows - first),
          .tables = bytes_.data(),
          .parts = parts_,
          .bits = args_.codec.bits,
          .threshold = threshold_};
}

// Without any limit, all rows would be candidates until there is one. The sum of a row's entries exceeds that of its bytes by
// less than one for each part, so the k-th sum of bytes bounds the k-th score.
void TableScan::find_limit(const ListView& view) {
  const std::size_t rows = std::min(view.rows, most_first_rows) / block_rows * block_rows;
  if (!with_bytes_ || rows < found_.wanted() || range_.widest < least_width) return;
  fill_bytes(range_.widest);
  for (std::size_t first = 0; first < rows; first += block_rows)
    x86::sum_codes(codes_of(view, first), sums_.data() + first);
  summed_ = rows;
  const double kth = x86::kth_sum(sums_.data(), rows, found_.wanted());
  // Bytes were cut off an f32 product that may have been rounded down.
  const double most = (kth + static_cast<double>(parts_)) * (1 + 0x1p-20) / scale_;
  found_.limit_score(index_, offset_ + range_.least + most + blur());
  cutoff_ = found_.cutoff(index_, {});
}

// A row whose score is at most the cutoff has entries whose sum exceeds the least by no more than `room`. Their bytes are cut
// off, so that their sum is at most room * scale, but for the roundings of f32: those of the score in blur(), those of the
// bytes in what is added in the end.
void TableScan::set_threshold() {
  pass_ = Pass::all;
  if (!with_bytes_ || cutoff_ == std::numeric_limits<float>::max()) return;
  const double room = static_cast<double>(cutoff_) - offset_ - range_.least + blur();
  if (room < 0) {
    pass_ = Pass::none;
    return;
  }
  if (scale_ == 0) {
    const double widest = std::min<double>(range_.widest, room);
    if (widest < least_width) return;
    fill_bytes(widest);
  }
  const double threshold = room * scale_ * (1 + 0x1p-20) + 2;
  if (threshold >= 0xFFFF) return;
  threshold_ = static_cast<std::uint16_t>(threshold);
  pass_ = Pass::some;
}

void TableScan::scan_block(const ListView& view, std::size_t first, std::uint32_t first_number) {
  const ListCodec& codec = args_.codec;
  const std::size_t rows = std::min(block_rows, view.rows - first);
  const std::byte* const codes = view.codes + first * codec.code_bytes;
  std::uint64_t passed = rows == block_rows ? ~std::uint64_t{0} : (std::uint64_t{1} << rows) - 1;
  if (pass_ == Pass::some)
    passed = first < summed_ ? x86::rows_within(sums_.data() + first, threshold_)
                             : x86::scan_codes(codes_of(view, first));
  for (; passed != 0; passed &= passed - 1) {
    const auto row = static_cast<std::size_t>(std::countr_zero(passed));
    const std::byte* const code = codes + row * codec.code_bytes;
    const float score = codec.bits == 8 ? sum_entries<8>(tables_.data(), parts_, code, offset_)
                                        : sum_entries<4>(tables_.data(), parts_, code, offset_);
    if (!(score <= cutoff_)) continue;
    scores_[count_] = score;
    rows_[count_++] = first_number + static_cast<std::uint32_t>(first + row);
  }
  if (count_ + block_rows <= std::size(scores_)) return;
  hand_over();
  cutoff_ = found_.cutoff(index_, {});
  set_threshold();
}

void TableScan::hand_over() {
  if (count_ != 0) found_.add(index_, {}, {scores_, count_}, {rows_, count_});
  count_ = 0;
}

}  // namespace nearwise::cpu

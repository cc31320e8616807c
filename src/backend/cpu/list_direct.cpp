#include "backend/cpu/list_direct.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "backend/cpu/kernels/part_sums.h"
#include "backend/cpu/list_collector.h"
#include "backend/cpu/x86/scan_codes.h"
#include "backend/cpu/x86/scans.h"
#include "core/convert.h"
#include "core/distance.h"

namespace nearwise::cpu {
namespace {

constexpr std::size_t block_rows = 64;
// A query whose lists hold more rows than this is given to several threads.
constexpr std::size_t task_rows = 32768;

bool has_byte_tables(const CpuStream& cpu) {
  return cpu.set.extension != Extension::none && x86::features().byte_tables;
}

// Queries as the bound of product codes knows them: not packed, so that nothing was lost.
struct DirectQueries {
  std::vector<Lengths> lengths;
  std::vector<double> squares;  // |q'|^2

  explicit DirectQueries(const ListSearchArgs& args)
      : lengths(args.queries.rows()), squares(args.queries.rows()) {
    std::vector<double> query(args.codec.dim);
    for (std::size_t index = 0; index < lengths.size(); ++index) {
      row_to_double(args.queries, index, query.data());
      for (std::size_t i = 0; i < query.size(); ++i) {
        const double value = query[i] - (args.centre.empty() ? 0 : static_cast<double>(args.centre[i]));
        squares[index] += value * value;
      }
      lengths[index] = {.norm = length_bound(squares[index]), .residual = 0};
    }
  }
};

// Lists of product codes for one query after the other. Not shared by threads.
//
// With r for the codewords of a row in a list with centroid c, half its squared distance is, up to a constant of the query,
// |c'|^2 / 2 - q'c' + |r|^2 / 2 + (c - q) r (list_bound.h): one number of query and list, and a sum over tables of them. For
// inner_product it is -qc - qr, and the tables are those of the query alone.
class TableScan {
 public:
  TableScan(CpuStream& cpu, const ListSearchArgs& args, const ProductWords& words, const ListNumbers& numbers,
            ListCollector& found)
      : cpu_(cpu),
        args_(args),
        words_(words),
        numbers_(numbers),
        found_(found),
        kernels_(part_sums_kernels(cpu.set)),
        parts_(args.codec.parts()),
        table_words_(std::size_t{1} << args.codec.bits),
        with_bytes_(has_byte_tables(cpu) && parts_ <= 256),
        query_(cpu.budget(), args.codec.dim),
        difference_(cpu.budget(), args.codec.dim),
        tables_(cpu.budget(), parts_ * table_words_),
        leasts_(cpu.budget(), parts_),
        bytes_(cpu.budget(), with_bytes_ ? parts_ * table_words_ : 0) {}

  void begin_query(std::size_t query) {
    index_ = query;
    row_to_double(args_.queries, query, query_.data());
    if (is_euclidean(args_.metric)) return;
    for (std::size_t i = 0; i < query_.size(); ++i) difference_[i] = -static_cast<float>(query_[i]);
    fill_tables();
  }

  void scan(std::size_t list) {
    const ListView& view = args_.lists[list];
    if (view.rows == 0) return;
    cpu_.context.cancel.check();
    cutoff_ = found_.cutoff(index_, {});
    if (std::isnan(cutoff_)) {
      found_.evaluate(index_, numbers_.first(list), view.rows);
      return;
    }
    begin_list(list);
    set_threshold();
    for (std::size_t first = 0; first < view.rows && pass_ != Pass::none; first += block_rows)
      scan_block(view, first, numbers_.first(list));
    hand_over();
  }

 private:
  // Which rows a look at the bytes of their tables lets pass.
  enum class Pass : std::uint8_t { all, some, none };

  void begin_list(std::size_t list) {
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

  void fill_tables() {
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

  // A row whose score is at most the cutoff has entries whose sum exceeds the least by no more than `room`. Their bytes are
  // cut off, so that their sum is at most room * scale, but for the roundings of f32: those of the score in `blur`, those of
  // the bytes in what is added in the end.
  void set_threshold() {
    pass_ = Pass::all;
    if (!with_bytes_ || cutoff_ == std::numeric_limits<float>::max()) return;
    const double blur = static_cast<double>(parts_ + 8) * 0x1p-22 *
                        (range_.magnitude + std::abs(static_cast<double>(offset_)) + std::abs(cutoff_));
    const double room = static_cast<double>(cutoff_) - offset_ - range_.least + blur;
    if (room < 0) {
      pass_ = Pass::none;
      return;
    }
    if (scale_ == 0) {
      const double widest = std::min<double>(range_.widest, room);
      if (widest < 1e-30) return;
      scale_ = static_cast<float>(255 / widest);
      x86::fill_byte_tables(tables_.data(), leasts_.data(), parts_, table_words_, scale_, bytes_.data());
    }
    const double threshold = room * scale_ * (1 + 0x1p-20) + 2;
    if (threshold >= 0xFFFF) return;
    threshold_ = static_cast<std::uint16_t>(threshold);
    pass_ = Pass::some;
  }

  void scan_block(const ListView& view, std::size_t first, std::uint32_t first_number) {
    const ListCodec& codec = args_.codec;
    const std::size_t rows = std::min(block_rows, view.rows - first);
    const std::byte* const codes = view.codes + first * codec.code_bytes;
    std::uint64_t passed = rows == block_rows ? ~std::uint64_t{0} : (std::uint64_t{1} << rows) - 1;
    if (pass_ == Pass::some)
      passed = x86::scan_codes({.codes = codes,
                                .code_bytes = codec.code_bytes,
                                .rows = rows,
                                .tables = bytes_.data(),
                                .parts = parts_,
                                .bits = codec.bits,
                                .threshold = threshold_});
    for (; passed != 0; passed &= passed - 1) {
      const auto row = static_cast<std::size_t>(std::countr_zero(passed));
      const std::byte* const code = codes + row * codec.code_bytes;
      const float score = codec.bits == 8 ? score_of<8>(code) : score_of<4>(code);
      if (!(score <= cutoff_)) continue;
      scores_[count_] = score;
      rows_[count_++] = first_number + static_cast<std::uint32_t>(first + row);
    }
    if (count_ + block_rows <= std::size(scores_)) return;
    hand_over();
    cutoff_ = found_.cutoff(index_, {});
    set_threshold();
  }

  template <unsigned bits>
  float score_of(const std::byte* code) const {
    const float* table = tables_.data();
    float sums[2] = {offset_, 0};  // two chains of additions
    for (std::size_t part = 0; part < parts_; ++part) {
      sums[part % 2] += table[word_of<bits>(code, part)];
      table += std::size_t{1} << bits;
    }
    return sums[0] + sums[1];
  }

  void hand_over() {
    if (count_ != 0) found_.add(index_, {}, {scores_, count_}, {rows_, count_});
    count_ = 0;
  }

  CpuStream& cpu_;
  const ListSearchArgs& args_;
  const ProductWords& words_;
  const ListNumbers& numbers_;
  ListCollector& found_;
  const PartSumsKernels& kernels_;
  const std::size_t parts_;
  const std::size_t table_words_;
  const bool with_bytes_;
  Buffer<double> query_;
  Buffer<float> difference_;  // that codewords are multiplied with
  Buffer<float> tables_;      // [parts, words]
  Buffer<float> leasts_;      // [parts]
  Buffer<std::uint8_t> bytes_;
  // Of the query and list at hand.
  std::size_t index_ = 0;
  float offset_ = 0;
  float cutoff_ = 0;
  x86::TableRange range_;
  float scale_ = 0;  // of the bytes; 0: they have not been made
  std::uint16_t threshold_ = 0;
  Pass pass_ = Pass::all;
  std::size_t count_ = 0;
  float scores_[2 * block_rows];
  std::uint32_t rows_[2 * block_rows];
};

ResidualLengths lengths_of(const ListCodec& codec, const ProductWords& words) {
  return {.centroid = words.longest_centroid(),
          .given_centroid = words.longest_given_centroid(),
          .codewords = {.norm = words.longest_codewords(), .residual = 0},
          .operations = table_operations(codec)};
}

}  // namespace

const ProductWords& words_of(CpuStream& cpu, const ListSearchArgs& args, std::optional<ProductWords>& own) {
  return args.codec.words != nullptr ? *args.codec.words : own.emplace(cpu.budget(), args.codec, args.centre);
}

// The queries that must share a list before packing it is cheaper than looking at it once for each. Of tables in registers:
// SIFT 1M, 16 bytes, 1,024 lists, 22 probes, 2026-11-15: 4,760 queries per second of CPU against 2,650 with 4 queries per
// list, 4,360 against 5,740 with 11.
bool is_direct_cheaper(const CpuStream& cpu, const ListSearchArgs& args) {
  const std::size_t most = args.codec.is_product() && !has_byte_tables(cpu) ? 3 : 8;
  return args.queries.rows() * args.probe_count() < most * args.lists.size();
}

void list_search_direct(CpuStream& cpu, const ListSearchArgs& args) {
  const std::size_t queries = args.queries.rows();
  const std::size_t probes = args.probe_count();
  const ListNumbers numbers(args.lists, ListNumbers::Lookups::few);
  const bool by_tables = args.codec.is_product() && args.metric != Metric::cosine;
  std::optional<ProductWords> own_words;
  const ProductWords* const words = by_tables ? &words_of(cpu, args, own_words) : nullptr;
  const DirectQueries direct(args);
  const ListBound bound = by_tables
                              ? ListBound(args.metric, Products::f32, args.codec.dim,
                                          lengths_of(args.codec, *words), direct.lengths, direct.squares)
                              : ListBound(args.metric, Products::f32, args.codec.dim);
  ListCollector found(cpu, direct.lengths, args, numbers, bound, ScoreForm::corrected, {});

  const std::size_t pieces = std::clamp<std::size_t>(numbers.rows() / args.lists.size() * probes / task_rows,
                                                     1, static_cast<std::size_t>(cpu.threads().count()));
  cpu.threads().for_each(queries * pieces, [&](std::size_t task) {
    const std::size_t query = task / pieces;
    std::optional<TableScan> scan;
    if (by_tables) scan.emplace(cpu, args, *words, numbers, found).begin_query(query);
    // The lists in turn: the nearest ones first, and their rows set a limit to the others.
    for (std::size_t probe = task % pieces; probe < probes; probe += pieces) {
      const Id list = args.probes[query * probes + probe];
      if (list == no_id) continue;
      if (by_tables) {
        scan->scan(static_cast<std::size_t>(list));
      } else {
        cpu.context.cancel.check();
        found.estimate(query, static_cast<std::size_t>(list));
      }
    }
  });
  cpu.threads().for_each(queries, [&](std::size_t query) { found.finish(query); });
}

}  // namespace nearwise::cpu

#include "ops/exact_search.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <numeric>

#include "core/checked.h"
#include "core/convert.h"
#include "core/distance.h"

namespace nearwise {
namespace {

double dot(const std::vector<double>& left, const std::vector<double>& right) {
  return std::inner_product(left.begin(), left.end(), right.begin(), 0.0);
}

// A few evenly spaced rows.
RowsView sample_of(const RowsView& base, std::size_t max_samples = 256) {
  const std::size_t samples = std::min(max_samples, base.rows());
  return {base.data(), base.type(), samples, base.dim(), base.rows() / samples * base.stride_bytes(),
          base.place()};
}

// The mean of the rows. Any point is correct. Rounded to about a hundredth of the data's spread, so that
// rows of few significant bits (whole numbers, say) still have few when it has been subtracted.
std::vector<float> mean_of(const RowsView& base) {
  const std::size_t samples = base.rows();
  std::vector<double> mean(base.dim(), 0);
  std::vector<double> row(base.dim());
  const auto for_each_sample = [&](const auto& look) {
    for (std::size_t i = 0; i < samples; ++i) {
      row_to_double(base, i, row.data());
      for (std::size_t j = 0; j < base.dim(); ++j) look(j);
    }
  };
  for_each_sample([&](std::size_t j) { mean[j] += row[j] / static_cast<double>(samples); });
  double spread = 0;
  for_each_sample([&](std::size_t j) { spread = std::max(spread, std::abs(row[j] - mean[j])); });
  const double grid = std::isfinite(spread) && spread > 0 ? std::ldexp(1.0, std::ilogb(spread) - 6) : 0;
  std::vector<float> centre(base.dim());
  for (std::size_t j = 0; j < base.dim(); ++j) {
    const auto rounded = static_cast<float>(grid > 0 ? std::nearbyint(mean[j] / grid) * grid : mean[j]);
    centre[j] = std::isfinite(rounded) ? rounded : 0;  // non-finite rows are refused later, by number
  }
  return centre;
}

// Rows of a sample as doubles, scaled to length 1 for cosine.
std::vector<std::vector<double>> numbers_of(const RowsView& rows, Metric metric) {
  std::vector<std::vector<double>> numbers(rows.rows(), std::vector<double>(rows.dim()));
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    row_to_double(rows, row, numbers[row].data());
    const double length = std::sqrt(dot(numbers[row], numbers[row]));
    if (metric == Metric::cosine && length > 0)
      for (double& number : numbers[row]) number /= length;
  }
  return numbers;
}

}  // namespace

bool suits_coarse_scores(const RowsView& queries, const RowsView& base, Metric metric) {
  // Of a standard deviation of the products: then few rows are open but those of the best.
  constexpr double largest_loss = 0.5;
  const bool is_host = queries.place().kind == DeviceKind::cpu && base.place().kind == DeviceKind::cpu;
  if (is_euclidean(metric) || !is_host || queries.rows() == 0 || base.rows() < 2) return true;
  const auto rows = numbers_of(sample_of(base, 64), metric);
  const double dim = static_cast<double>(base.dim());
  double residual = 0;  // of a row: rounding errors are spread evenly over a step
  for (const std::vector<double>& row : rows) {
    double largest = 0;
    for (const double number : row) largest = std::max(largest, std::abs(number));
    residual += largest / 127 * std::sqrt(dim / 12) / static_cast<double>(rows.size());
  }
  double loss = 0;
  double spread = 0;
  for (const std::vector<double>& query : numbers_of(sample_of(queries, 8), metric)) {
    double sum = 0;
    double squares = 0;
    for (const std::vector<double>& row : rows) {
      const double product = dot(query, row);
      sum += product;
      squares += product * product;
    }
    const auto count = static_cast<double>(rows.size());
    spread += std::sqrt(std::max(0.0, squares / count - sum / count * (sum / count)));
    loss += std::sqrt(dot(query, query)) * residual;
  }
  // Numbers that are not finite are refused later, by their row.
  return !(loss > largest_loss * spread);
}

std::vector<float> centre_of(Stream& stream, const RowsView& base, Metric metric) {
  if (!is_euclidean(metric) || base.rows() == 0) return {};
  const RowsView sample = sample_of(base);
  if (sample.place().kind == DeviceKind::cpu) return mean_of(sample);
  const std::size_t row_bytes = sample.dim() * element_size(sample.type());
  std::vector<std::byte> fetched(sample.rows() * row_bytes);
  dispatch(&Ops::fetch_rows, "fetch_rows", stream, sample, fetched.data());
  return mean_of({fetched.data(), sample.type(), sample.rows(), sample.dim(), row_bytes});
}

ElementType scan_type(Stream& stream, const RowsView& rows, Metric metric) {
  // A file larger than memory would have to be read twice.
  constexpr std::uint64_t max_bytes = std::uint64_t{4} << 30;
  const auto narrowest = stream.context.backend.ops.narrowest_type;
  const bool may_narrow = narrowest != nullptr && metric != Metric::cosine &&
                          rows.type() == ElementType::f32 && rows.rows() * rows.stride_bytes() <= max_bytes;
  return may_narrow ? narrowest(stream, rows) : rows.type();
}

ScanTypes scan_types(Stream& stream, const RowsView& queries, const RowsView& base, Metric metric) {
  const ScanTypes own = {queries.type(), base.type()};
  const ElementType narrow = scan_type(stream, queries, metric);
  // Queries are few: if they are not narrower, the base is not read.
  if (narrow == own.queries && narrow != ElementType::u8) return own;
  return scan_type(stream, base, metric) == narrow ? ScanTypes{narrow, narrow} : own;
}

std::vector<Shard> ExactSearch::shards() const {
  std::vector<Shard> parts;
  if (blocks.empty()) {
    // Of selected rows: parts of their list.
    const std::size_t rows = selection.rows ? selection.rows->size() : base.rows();
    for (std::size_t i = 0; i < plan.shards; ++i) {
      // rows * i may exceed 64 bits only beyond 2^52 rows and 4096 shards.
      const std::size_t begin = rows * i / plan.shards;
      const std::size_t end = rows * (i + 1) / plan.shards;
      parts.push_back({begin, base.slice(begin, end - begin), {}});
    }
    return parts;
  }
  // Whole blocks; with fewer blocks than shards, one per shard.
  const std::size_t count = std::min(plan.shards, blocks.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = blocks.size() * i / count;
    const std::size_t end = blocks.size() * (i + 1) / count;
    const std::size_t first_row = blocks[begin].first_row;
    const std::size_t end_row = blocks[end - 1].first_row + blocks[end - 1].rows;
    parts.push_back(
        {first_row, base.slice(first_row, end_row - first_row), blocks.subspan(begin, end - begin)});
  }
  return parts;
}

std::unique_ptr<PreparedRows> ExactSearch::prepare_queries(Stream& stream, const RowsView& tile,
                                                           std::size_t first_query) const {
  return dispatch(&Ops::prepare_rows, "prepare_rows", stream,
                  PrepareArgs{.rows = tile,
                              .role = RowsRole::queries,
                              .type = types.queries,
                              .against = types.base,
                              .metric = metric,
                              .centre = centre,
                              .first_row = first_query,
                              .coarse = coarse});
}

void ExactSearch::scan(Stream& stream, const Shard& shard, const PreparedRows& prepared, Collector& found,
                       BlocksInFlight& in_flight) const {
  const std::size_t end = shard.first_row + shard.rows.rows();
  const auto scan_block = [&](const PreparedRows& block, std::size_t first, std::size_t count,
                              std::size_t next_rows) {
    dispatch(&Ops::knn_block, "knn_block", stream,
             KnnBlockArgs{
                 .queries = prepared,
                 .block = block,
                 .found = found,
                 .base = shard.rows,
                 .first_row = first - shard.first_row,
                 .block_rows = count,
                 .next_rows = next_rows,
                 .centre = centre,
                 .allowed = selection.allowed.any() ? selection.allowed.from_row(shard.first_row) : RowBits(),
                 .progress = &progress});
  };
  for (const Block& block : shard.blocks) scan_block(*block.prepared, block.first_row, block.rows, 0);
  if (!shard.blocks.empty()) return;
  std::size_t block_rows = plan.base_block;
  std::size_t number = 0;
  for (std::size_t first = shard.first_row; first < end;) {
    const std::size_t count = std::min(block_rows, end - first);
    // Its scan has finished: another block was scanned since, or nothing is in flight.
    std::unique_ptr<PreparedRows>& block = in_flight[plan.keep_block ? number % 2 : 0];
    block.reset();
    try {
      block = dispatch(&Ops::prepare_rows, "prepare_rows", stream,
                       PrepareArgs{.rows = base.slice(first, count),
                                   .role = RowsRole::base,
                                   .type = types.base,
                                   .against = types.queries,
                                   .metric = metric,
                                   .centre = centre,
                                   .first_row = first,
                                   .coarse = coarse});
    } catch (const Error& error) {
      // Less memory is available than the plan assumed.
      if (error.code() != ErrorCode::out_of_memory || count <= plan.min_block) throw;
      block_rows = round_up(divide_up<std::size_t>(count, 2), plan.min_block);
      continue;
    }
    scan_block(*block, first, count, std::min(block_rows, end - first - count));
    first += count;
    ++number;
  }
}

void for_each_shard(const Context& context, std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> errors(count);
  context.state().threads->for_each(count, [&](std::size_t i) {
    try {
      work(i);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace nearwise

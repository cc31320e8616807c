// Estimates for the choice of an index. Constants are set by few measurements, mostly of SIFT 1M (Xeon with
// AMX, two cores, November 2026), not fitted; times on one thread unless said otherwise.
#include "nearwise/choose_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backend/context_state.h"
#include "backend/dispatch.h"
#include "codes/scalar_codec.h"
#include "core/check.h"
#include "core/memory.h"
#include "graph_index/graph_index_state.h"
#include "ivf/defaults.h"

namespace nearwise {
namespace {

constexpr double ns = 1e-9;
constexpr double reference_rows = 1e6;
// An exact search that takes no longer is preferred to any approximation.
constexpr double short_query_seconds = 50e-6;

// What the estimates have in common.
struct Problem {
  const IndexRequest& request;
  double rows;
  double row_bytes;
  double pair_ns;  // one query and one row in a batch, on one thread
  double threads;
  // How many times more work than for a recall of 0.95, for an index whose misses fall with this power of it.
  double work_for_recall(double power) const {
    return std::pow(0.05 / std::max(1 - request.target_recall, 1e-4), power);
  }
  bool is_single() const { return request.queries == QueryPattern::single; }
};

std::uint64_t bytes_of(double bytes) { return static_cast<std::uint64_t>(bytes); }

IndexEstimate exact_estimate(const Problem& problem) {
  // Bytes in the prepared form: half of floats, as they are otherwise.
  const bool is_byte = element_size(problem.request.element_type) == 1;
  const double prepared = problem.row_bytes * (is_byte ? 1 : 0.5);
  // A single query reads all vectors once, at about 10 GB/s.
  const double pair_ns =
      problem.is_single() ? std::max(problem.pair_ns, 0.1 * problem.row_bytes) : problem.pair_ns;
  IndexEstimate estimate = {.kind = IndexKind::exact};
  estimate.bytes = bytes_of(problem.rows * (problem.row_bytes + prepared));
  estimate.build_bytes = estimate.bytes;
  estimate.build_seconds = problem.rows * problem.row_bytes * 0.3 * ns / problem.threads;
  estimate.query_seconds = problem.rows * pair_ns * ns / problem.threads;
  return estimate;
}

// The share of vectors that must be scanned falls with their number.
IndexEstimate ivf_estimate(const Problem& problem, IndexKind kind, VectorStorage vectors) {
  const auto dim = static_cast<double>(problem.request.dim);
  const auto lists = static_cast<double>(ivf::default_lists(problem.request.rows));
  constexpr double training_rows = ivf::training_rows_per_list;
  const double scanned = std::min(
      problem.rows, 0.012 * std::sqrt(problem.rows * reference_rows) * problem.work_for_recall(0.65));
  const double code_bytes = std::clamp(dim / 8, 8.0, 64.0);
  const bool is_flat = kind == IndexKind::ivf_flat;
  const double scanned_ns = is_flat ? 1 + 0.02 * problem.row_bytes : 1 + 0.25 * code_bytes;
  // The distances to all centroids; batches share the reading of centroids and lists.
  const double one = lists * dim * 0.2 + scanned * scanned_ns + (is_flat ? 0 : 100 * 60);
  IndexEstimate estimate = {.kind = kind, .vectors = vectors};
  estimate.query_seconds = one * (problem.is_single() ? 1 : 0.3 / problem.threads) * ns;
  const double kept = vectors == VectorStorage::u8    ? dim
                      : vectors == VectorStorage::f16 ? 2 * dim
                                                      : problem.row_bytes;
  estimate.bytes = bytes_of(problem.rows * (kept + (is_flat ? 0 : code_bytes) + sizeof(Id)));
  estimate.build_bytes = estimate.bytes + bytes_of(training_rows * lists * dim * sizeof(float));
  // k-means, ten iterations; the nearest list of every vector; codes.
  estimate.build_seconds =
      (lists * lists * training_rows * 10 + problem.rows * lists) * problem.pair_ns * ns / problem.threads +
      (is_flat ? 0 : problem.rows * dim * 60 * ns / problem.threads);
  return estimate;
}

IndexEstimate graph_estimate(const Problem& problem) {
  ScalarCodec codec = {.metric = problem.request.metric, .dim = problem.request.dim};
  const auto code_bytes = static_cast<double>(codec.row_bytes());
  const bool has_nibbles = problem.request.rows >= graph_index::min_nibble_rows;
  const bool are_codes =
      problem.request.element_type == ElementType::u8 &&
      (problem.request.metric == Metric::sqeuclidean || problem.request.metric == Metric::euclidean);
  const auto degree = static_cast<double>(GraphIndexOptions().degree);
  const double own =
      degree * sizeof(std::int32_t) + (are_codes ? 0 : code_bytes) + (has_nibbles ? code_bytes / 2 : 0);
  const double width = 0.3 + 0.7 * code_bytes / 128;  // relative to that of SIFT
  IndexEstimate estimate = {.kind = IndexKind::graph};
  estimate.bytes = bytes_of(problem.rows * (problem.row_bytes + own));
  // Neighbour lists with distances, reverse edges.
  estimate.build_bytes = estimate.bytes + bytes_of(problem.rows * degree * 28);
  estimate.build_seconds = problem.rows * 130'000 * width * ns / problem.threads;
  const double one =
      40'000 * std::pow(problem.rows / reference_rows, 0.35) * problem.work_for_recall(0.55) * width;
  estimate.query_seconds = one * (problem.is_single() ? 1 : 1 / problem.threads) * ns;
  return estimate;
}

bool is_short_and_exact(const IndexEstimate& estimate) {
  return estimate.kind == IndexKind::exact && estimate.query_seconds <= short_query_seconds;
}

std::string reason_for(const IndexRequest& request, const IndexChoice& choice, std::uint64_t limit) {
  const IndexEstimate& chosen = choice.chosen();
  if (!chosen.fits)
    return fmt::format("no kind fits into {}: {} needs least, about {}", format_bytes(limit),
                       name(chosen.kind), format_bytes(chosen.build_bytes));
  if (choice.estimates.size() == 1) return "only exact search has a recall of 1";
  if (is_short_and_exact(chosen))
    return fmt::format("an exact search takes about {:.0f} us: there is no need to approximate",
                       chosen.query_seconds / ns / 1000);
  std::string text = fmt::format("{} takes the least time to build and to answer {} queries ({})",
                                 name(chosen.kind), request.expected_queries, name(request.queries));
  if (std::ranges::any_of(choice.estimates, [](const IndexEstimate& each) { return !each.fits; }))
    text += fmt::format(", of those that fit into {}", format_bytes(limit));
  return text;
}

}  // namespace

std::string_view name(IndexKind kind) {
  switch (kind) {
    case IndexKind::ivf_flat: return "ivf_flat";
    case IndexKind::ivf_pq: return "ivf_pq";
    case IndexKind::graph: return "graph";
    case IndexKind::exact: break;
  }
  return "exact";
}

std::string_view name(QueryPattern pattern) { return pattern == QueryPattern::batch ? "batch" : "single"; }

std::string IndexChoice::table() const {
  std::string text = fmt::format("{:14}{:>10}{:>10}{:>11}{:>9}{:>10}", "", "build s", "query us", "total s",
                                 "MB", "build MB");
  for (const IndexEstimate& estimate : estimates) {
    std::string title(name(estimate.kind));
    if (estimate.vectors != VectorStorage::keep) title += fmt::format(" {}", name(estimate.vectors));
    text += fmt::format("\n{:14}{:10.1f}{:10.0f}{:11.1f}{:9.0f}{:10.0f}{}", title, estimate.build_seconds,
                        estimate.query_seconds * 1e6, estimate.total_seconds,
                        static_cast<double>(estimate.bytes) / 1e6,
                        static_cast<double>(estimate.build_bytes) / 1e6, estimate.fits ? "" : "  too large");
  }
  return text;
}

QueryPattern parse_query_pattern(std::string_view text) {
  for (const QueryPattern pattern : {QueryPattern::single, QueryPattern::batch})
    if (name(pattern) == text) return pattern;
  fail(ErrorCode::invalid_argument, "queries: must be single or batch, got {}", text);
}

IndexChoice choose_index(const Context& context, const IndexRequest& request) {
  require(request.rows >= 1 && request.dim >= 1, "choose_index: there must be vectors, got {} of {} elements",
          request.rows, request.dim);
  require(request.target_recall > 0 && request.target_recall <= 1,
          "choose_index: target_recall must be above 0 and at most 1, got {}", request.target_recall);
  const auto stream = open_stream(context);
  const KnnCosts costs = dispatch(&Ops::knn_costs, "knn_costs", *stream,
                                  KnnCostsArgs{request.dim, graph_index::calibration_neighbors,
                                               request.metric, request.element_type, request.element_type});
  const Problem problem = {.request = request,
                           .rows = static_cast<double>(request.rows),
                           .row_bytes = static_cast<double>(request.dim * element_size(request.element_type)),
                           .pair_ns = costs.pair_ns,
                           .threads = static_cast<double>(context.threads())};
  IndexChoice choice;
  choice.estimates.push_back(exact_estimate(problem));
  // The others leave it to chance whether they find every neighbour, and need vectors to learn from.
  if (request.target_recall < 1 && request.rows >= 2) {
    choice.estimates.push_back(ivf_estimate(problem, IndexKind::ivf_flat, VectorStorage::keep));
    for (const VectorStorage vectors : {VectorStorage::keep, VectorStorage::f16, VectorStorage::u8})
      if (vectors == VectorStorage::keep || element_size(request.element_type) > 2)
        choice.estimates.push_back(ivf_estimate(problem, IndexKind::ivf_pq, vectors));
    if (request.dim < ScalarCodec::max_dim && context.place().kind == DeviceKind::cpu)
      choice.estimates.push_back(graph_estimate(problem));
  }
  const std::uint64_t limit = context.memory_limit();
  for (IndexEstimate& estimate : choice.estimates) {
    estimate.fits = limit == 0 || estimate.build_bytes <= limit;
    estimate.total_seconds =
        estimate.build_seconds + static_cast<double>(request.expected_queries) * estimate.query_seconds;
  }
  // What fits first: exact search if it is short, the fastest otherwise. If nothing fits, the smallest. Of
  // equals the first, so that vectors are kept narrower only where they have to be.
  std::ranges::stable_sort(choice.estimates, [](const IndexEstimate& left, const IndexEstimate& right) {
    if (left.fits != right.fits) return left.fits;
    if (is_short_and_exact(left) != is_short_and_exact(right)) return is_short_and_exact(left);
    return left.fits ? left.total_seconds < right.total_seconds : left.build_bytes < right.build_bytes;
  });
  choice.reason = reason_for(request, choice, limit);
  return choice;
}

}  // namespace nearwise

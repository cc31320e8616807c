// nearwise eval: recall of a result against the true neighbours.
//
//   k-recall@k  share of the true k nearest among the first k results, averaged over queries
//   1-recall@k  share of queries whose nearest neighbour is among the first k results
//
// An id counts once however often it is returned, no_id never. With distances on both sides, ties count: a
// result at the distance of the true k-th (1-recall: first) is as good as it, up to the number of true
// neighbours at that distance. A query with fewer than k true neighbours is measured against those it has;
// one with none is skipped.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/search_report.h"
#include "cli/shared/text.h"

namespace nearwise::cli {
namespace {

struct Recall {
  std::size_t k = 0;
  RecallEstimate k_at_k;
  RecallEstimate one_at_k;
};

// One query at one k.
struct Hits {
  std::size_t found = 0;     // of the true k nearest
  std::size_t possible = 0;  // at most k
  bool found_first = false;
};

// The true neighbours of one query at one k: `last` at the distance of the k-th, `nearer` before it; without
// distances all are in `nearer`. Reused between queries to save allocations.
struct Truth {
  std::vector<Id> nearer;
  std::vector<Id> last;
  Id first = no_id;
  float first_distance = NAN;  // NAN without distances: equals nothing
  float last_distance = NAN;
  std::vector<Id> seen;  // ids of the result counted so far
};

void sort_unique(std::vector<Id>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

bool contains(const std::vector<Id>& sorted, Id id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

void read_truth(const Neighbors& neighbors, std::size_t query, std::size_t k, bool by_distance,
                Truth& truth) {
  truth.nearer.clear();
  truth.last.clear();
  truth.first = no_id;
  truth.first_distance = truth.last_distance = NAN;
  for (std::size_t rank = 0; rank < k; ++rank) {
    const Id id = neighbors.ids(query, rank);
    if (id == no_id) continue;
    if (by_distance) truth.last_distance = neighbors.distances(query, rank);
    if (truth.first == no_id) {
      truth.first = id;
      truth.first_distance = truth.last_distance;
    }
  }
  for (std::size_t rank = 0; rank < k; ++rank) {
    const Id id = neighbors.ids(query, rank);
    if (id == no_id) continue;
    const bool is_last = by_distance && neighbors.distances(query, rank) == truth.last_distance;
    (is_last ? truth.last : truth.nearer).push_back(id);
  }
  sort_unique(truth.nearer);
  sort_unique(truth.last);
}

Hits count_hits(const Neighbors& result, std::size_t query, std::size_t k, bool by_distance, Truth& truth) {
  Hits hits{.possible = truth.nearer.size() + truth.last.size()};
  std::size_t found_last = 0;
  truth.seen.clear();
  for (std::size_t rank = 0; rank < k; ++rank) {
    const Id id = result.ids(query, rank);
    if (id == no_id) continue;
    const auto place = std::lower_bound(truth.seen.begin(), truth.seen.end(), id);
    if (place != truth.seen.end() && *place == id) continue;
    truth.seen.insert(place, id);
    const float distance = by_distance ? result.distances(query, rank) : NAN;
    if (contains(truth.nearer, id))
      ++hits.found;
    else if (contains(truth.last, id) || distance == truth.last_distance)
      ++found_last;
    if (id == truth.first || distance == truth.first_distance) hits.found_first = true;
  }
  // Ties count up to the true number at that distance; they do not replace a nearer neighbour.
  hits.found += std::min(found_last, truth.last.size());
  return hits;
}

// Of the first `queries` rows, for every k of ks; both sides must have as many. Empty if all were skipped.
std::vector<Recall> recalls_at(const Neighbors& result, const Neighbors& truth, std::size_t queries,
                               const std::vector<std::size_t>& ks) {
  const bool by_distance = has_distances(result) && has_distances(truth);
  Truth scratch;
  std::vector<Recall> recalls;
  for (const std::size_t k : ks) {
    std::vector<double> k_at_k;
    std::vector<double> one_at_k;
    for (std::size_t query = 0; query < queries; ++query) {
      read_truth(truth, query, k, by_distance, scratch);
      const Hits hits = count_hits(result, query, k, by_distance, scratch);
      if (hits.possible == 0) continue;
      k_at_k.push_back(static_cast<double>(hits.found) / static_cast<double>(hits.possible));
      one_at_k.push_back(hits.found_first ? 1 : 0);
    }
    if (k_at_k.empty()) return {};
    recalls.push_back({.k = k, .k_at_k = estimate_recall(k_at_k), .one_at_k = estimate_recall(one_at_k)});
  }
  return recalls;
}

struct EvalArguments {
  std::filesystem::path result;
  std::filesystem::path truth;
  std::vector<std::size_t> ks;  // empty: 1, 10 and 100, as far as both files have them
  std::optional<std::size_t> limit_queries;
};

std::size_t count_queries(const Session& session, const EvalArguments& arguments, const Neighbors& result,
                          const Neighbors& truth) {
  const std::size_t rows = result.ids.rows();
  const std::size_t true_rows = truth.ids.rows();
  if (!arguments.limit_queries && rows != true_rows)
    refuse(session,
           "result and truth must have the same number of queries, '{}' has {} and '{}' has {} "
           "(--limit-queries N compares the first N)",
           arguments.result.string(), rows, arguments.truth.string(), true_rows);
  const std::size_t queries = arguments.limit_queries.value_or(rows);
  if (queries > std::min(rows, true_rows))
    refuse(session, "--limit-queries must be at most the {} queries of both files, got {}",
           std::min(rows, true_rows), queries);
  return queries;
}

std::vector<std::size_t> choose_ks(const Session& session, const EvalArguments& arguments,
                                   const Neighbors& result, const Neighbors& truth) {
  const std::size_t available = std::min(result.ids.cols(), truth.ids.cols());
  std::vector<std::size_t> ks = arguments.ks;
  if (ks.empty())
    for (const std::size_t k : {1, 10, 100})
      if (k <= available) ks.push_back(k);
  for (const std::size_t k : ks)
    if (k > available)
      refuse(session, "k must be at most the {} neighbours that both files have, got {}", available, k);
  return ks;
}

std::string interval(const RecallEstimate& recall) {
  return fmt::format("{:.4f} to {:.4f}", recall.low, recall.high);
}

void print_table(const std::vector<Recall>& recalls, std::string_view ties) {
  std::string text = fmt::format("{} queries, ties count by {}\n{:>6}  {:>10}  {:>16}  {:>10}  {:>16}\n",
                                 recalls.front().k_at_k.rows, ties, "k", "k-recall@k", "95 % interval",
                                 "1-recall@k", "95 % interval");
  for (const auto& [k, k_at_k, one_at_k] : recalls)
    text += fmt::format("{:>6}  {:>10.6f}  {:>16}  {:>10.6f}  {:>16}\n", k, k_at_k.value, interval(k_at_k),
                        one_at_k.value, interval(one_at_k));
  print(text);
}

void print_json(const std::vector<Recall>& recalls, std::string_view ties) {
  Json json = {{"queries", recalls.front().k_at_k.rows}, {"ties", ties}, {"recall", Json::array()}};
  for (const auto& [k, k_at_k, one_at_k] : recalls)
    json["recall"].push_back(
        {{"k", k}, {"k_recall_at_k", to_json(k_at_k)}, {"one_recall_at_k", to_json(one_at_k)}});
  print(json);
}

ExitCode run_eval(Session& session, const EvalArguments& arguments) {
  const NeighborFile result = read_neighbor_file(arguments.result);
  const NeighborFile truth = read_neighbor_file(arguments.truth);
  if (result.metric && truth.metric && *result.metric != *truth.metric)
    refuse(session, "result and truth must have the same metric, '{}' has {} and '{}' has {}",
           arguments.result.string(), name(*result.metric), arguments.truth.string(), name(*truth.metric));
  const std::size_t queries = count_queries(session, arguments, result.neighbors, truth.neighbors);
  const std::vector<std::size_t> ks = choose_ks(session, arguments, result.neighbors, truth.neighbors);

  const std::vector<Recall> recalls = recalls_at(result.neighbors, truth.neighbors, queries, ks);
  if (recalls.empty())
    throw InvalidData(fmt::format("eval: '{}' has no query with a neighbour", arguments.truth.string()));
  const bool by_distance = has_distances(result.neighbors) && has_distances(truth.neighbors);
  const std::string_view ties = by_distance ? "distance" : "id";
  session.json ? print_json(recalls, ties) : print_table(recalls, ties);
  return ExitCode::ok;
}

}  // namespace

void add_eval(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_eval, "eval", "Measure the recall of a search result",
                  "  nearwise eval found.ivecs truth.nw -k 1,10\n\n"
                  "k-recall@k: share of the true k nearest among the first k. 1-recall@k: share of queries "
                  "whose nearest\n"
                  "neighbour is among the first k. If both files have distances (.nw, .bin), ties with the "
                  "true k-th count.");
  add_path(parser, "result", arguments.result, "Neighbours found: .nw .ivecs .ibin .bin .npy")->required();
  add_path(parser, "truth", arguments.truth, "True neighbours")->required();
  parser
      .add_option_function<std::vector<std::string>>(
          "-k",
          [&ks = arguments.ks](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) try {
                ks.push_back(parse_count(text, 1));
              } catch (const Error& error) {
                throw CLI::ValidationError(fmt::format("-k must be {}, got '{}'", error.what(), text));
              }
          },
          "One or more values of k (default: 1,10,100, as far as both files have them)")
      ->type_name("N,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_limit_queries(parser, arguments.limit_queries);
}

}  // namespace nearwise::cli

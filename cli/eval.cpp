// nearwise eval: recall of a result against the truth.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/recall.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/search_report.h"
#include "cli/shared/text.h"

namespace nearwise::cli {
namespace {

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

void print_table(const std::vector<Recall>& recalls, std::size_t measured, bool by_distance) {
  std::string text = fmt::format("{} queries, ties count by {}\n{:>6}  {:>11}  {:>10}\n", measured,
                                 by_distance ? "distance" : "id", "k", "k-recall@k", "1-recall@k");
  for (const Recall& recall : recalls)
    text += fmt::format("{:>6}  {:>11.6f}  {:>10.6f}\n", recall.k, recall.k_at_k, recall.one_at_k);
  print(text);
}

void print_json(const std::vector<Recall>& recalls, std::size_t measured, bool by_distance) {
  Json json = {{"queries", measured}, {"ties", by_distance ? "distance" : "id"}, {"recall", Json::array()}};
  for (const Recall& recall : recalls)
    json["recall"].push_back(
        {{"k", recall.k}, {"k_recall_at_k", recall.k_at_k}, {"one_recall_at_k", recall.one_at_k}});
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

  std::size_t measured = 0;
  const std::vector<Recall> recalls =
      measure_recall(result.neighbors, truth.neighbors, queries, ks, measured);
  if (measured == 0)
    throw InvalidData(fmt::format("eval: '{}' has no query with a neighbour", arguments.truth.string()));
  const bool by_distance = has_distances(result.neighbors) && has_distances(truth.neighbors);
  session.json ? print_json(recalls, measured, by_distance) : print_table(recalls, measured, by_distance);
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

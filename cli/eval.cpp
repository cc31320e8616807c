// nearwise eval: recall of a result against the truth.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/shared/files.h"
#include "cli/shared/recall.h"
#include "cli/shared/session.h"
#include "cli/shared/text.h"

namespace nearwise::cli {
namespace {

struct EvalArguments {
  std::filesystem::path result;
  std::filesystem::path truth;
  std::vector<std::size_t> ks;    // empty: 1, 10 and 100 as far as both sides go
  std::size_t limit_queries = 0;  // 0: all
};

std::size_t count_queries(const EvalArguments& arguments, const Neighbors& result, const Neighbors& truth) {
  const std::size_t result_rows = result.ids.rows();
  const std::size_t truth_rows = truth.ids.rows();
  const std::size_t limit = arguments.limit_queries;
  if (limit > 0) {
    if (limit > std::min(result_rows, truth_rows))
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("eval: --limit-queries {} exceeds the {} rows of the result or the {} of the truth",
                      limit, result_rows, truth_rows));
    return limit;
  }
  if (result_rows != truth_rows)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("eval: result and truth must have as many rows, '{}' has {} and '{}' has {} "
                            "(--limit-queries N compares the first N)",
                            arguments.result.string(), result_rows, arguments.truth.string(), truth_rows));
  return result_rows;
}

std::vector<std::size_t> choose_ks(const EvalArguments& arguments, const Neighbors& result,
                                   const Neighbors& truth) {
  const std::size_t available = std::min(result.ids.cols(), truth.ids.cols());
  std::vector<std::size_t> ks = arguments.ks;
  if (ks.empty())
    for (const std::size_t k : {1, 10, 100})
      if (k <= available) ks.push_back(k);
  for (const std::size_t k : ks)
    if (k > available)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("eval: k = {} exceeds what both sides have: the result {}, the truth {} neighbours", k,
                      result.ids.cols(), truth.ids.cols()));
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

ExitCode run_eval(const Session& session, const EvalArguments& arguments) {
  const NeighborFile result = read_neighbor_file(arguments.result);
  const NeighborFile truth = read_neighbor_file(arguments.truth);
  if (result.metric && truth.metric && *result.metric != *truth.metric)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("eval: the result was made with {}, the truth with {}", name(*result.metric),
                            name(*truth.metric)));
  const std::size_t queries = count_queries(arguments, result.neighbors, truth.neighbors);
  const std::vector<std::size_t> ks = choose_ks(arguments, result.neighbors, truth.neighbors);

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

void add_eval(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<EvalArguments>();
  CLI::App* const command =
      add_command(app, session, "eval", "Measure the recall of a result against the true neighbours",
                  "  nearwise eval --result found.ivecs --truth truth.nw -k 1 10\n\n"
                  "k-recall@k: the share of the true k nearest found among the first k. 1-recall@k: the "
                  "share of queries whose\n"
                  "nearest neighbour is among the first k. Where both files have distances (.nw, .bin), a "
                  "neighbour as far away\n"
                  "as the true k-th counts in its place.");
  add_path(*command, "--result", arguments->result, "Neighbours found: .nw .ivecs .ibin .bin .npy")
      ->required();
  add_path(*command, "--truth", arguments->truth, "True neighbours")->required();
  command
      ->add_option_function<std::vector<std::string>>(
          "-k",
          [arguments](const std::vector<std::string>& texts) {
            try {
              for (const std::string& text : texts) arguments->ks.push_back(parse_count(text, 1));
            } catch (const Error& error) {
              throw CLI::ValidationError("-k", error.what());
            }
          },
          "One or more k (1, 10 and 100, where both files go that far)")
      ->type_name("N");
  add_count(*command, "--limit-queries", arguments->limit_queries, 1, "Only the first N queries");
  command->callback([&session, arguments] {
    session.run = [&session, arguments] { return run_eval(session, *arguments); };
  });
}

}  // namespace nearwise::cli

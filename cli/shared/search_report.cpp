#include "cli/shared/search_report.h"

#include <algorithm>
#include <utility>

#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/text.h"

namespace nearwise::cli {
namespace {

constexpr std::size_t preview_queries = 5;
constexpr std::size_t preview_neighbors = 5;

std::string preview(const Neighbors& found) {
  std::string text;
  const std::size_t columns = std::min(preview_neighbors, found.ids.cols());
  for (std::size_t query = 0; query < std::min(preview_queries, found.ids.rows()); ++query) {
    text += fmt::format("query {}:", query);
    for (std::size_t column = 0; column < columns; ++column)
      text += fmt::format("  {} ({:.6g})", found.ids(query, column), found.distances(query, column));
    text += columns < found.ids.cols() ? "  ...\n" : "\n";
  }
  if (found.ids.rows() > preview_queries)
    text += fmt::format("... {} more; --output FILE writes all\n", found.ids.rows() - preview_queries);
  return text;
}

// Infinite distances (padding) become null: JSON has no infinity.
Json preview_json(const Neighbors& found) {
  Json rows = Json::array();
  for (std::size_t query = 0; query < std::min(preview_queries, found.ids.rows()); ++query)
    rows.push_back({{"ids", found.ids.row(query)}, {"distances", found.distances.row(query)}});
  return rows;
}

}  // namespace

void add_search_output(CLI::App& parser, std::filesystem::path& output) {
  add_output(parser, output, "Neighbours to write: .nw .bin .ivecs .ibin .npy (default: print a few)")
      ->required(false);
}

CLI::Option* add_limit_queries(CLI::App& parser, std::optional<std::size_t>& limit) {
  return add_count(parser, "--limit-queries", limit, 1, "Only the first N queries");
}

RowsView first_rows_of(RowsView rows, std::optional<std::size_t> limit) {
  return limit ? rows.slice(0, std::min(*limit, rows.rows())) : rows;
}

void check_search_output(const Session& session, const std::filesystem::path& output,
                         std::initializer_list<std::filesystem::path> inputs) {
  if (output.empty()) return;
  require_suffix_for(Content::neighbors, output);
  check_output(session, output, inputs);
}

ExitCode report_search(const Session& session, const SearchReport& report, Provenance provenance,
                       Neighbors found) {
  const std::size_t queries = found.ids.rows();
  const std::size_t k = found.ids.cols();
  const double rate = report.seconds > 0 ? static_cast<double>(queries) / report.seconds : 0;
  Json json = {{"rows", queries},           {"k", k},
               {"seconds", report.seconds}, {"queries_per_second", rate},
               {"output", nullptr},         {"metric", name(report.metric)}};
  json.update(report.more);
  const std::string speed = fmt::format("{:.3g} s, {} queries/s", report.seconds, format_count(rate));
  if (report.output.empty()) {
    json["first_rows"] = preview_json(found);
    const std::string title = fmt::format("{} nearest of {} by {}, {} queries in {}\n", k, report.searched,
                                          name(report.metric), queries, speed);
    session.json ? print(json) : print(title + preview(found));
    return ExitCode::ok;
  }
  json["output"] = report.output.string();
  write_result(report.output, report.metric, std::move(provenance), std::move(found));
  conclude(
      session, json,
      fmt::format("wrote {} x {} to {}: {}, {}", queries, k, report.output.string(), report.searched, speed));
  return ExitCode::ok;
}

Json to_json(const RecallEstimate& recall) {
  return {{"value", recall.value}, {"low", recall.low}, {"high", recall.high}, {"rows", recall.rows}};
}

}  // namespace nearwise::cli

#include "backend/cpu/exact/within_radius.h"

#include <algorithm>

#include "backend/cpu/operations.h"
#include "core/distance.h"

namespace nearwise::cpu {
namespace {

constexpr std::size_t spare = 256;  // as in Candidates
constexpr std::size_t first_answers = 16;

}  // namespace

std::size_t WithinRadius::bytes_per_query(std::size_t base_width) {
  return Candidates::bytes_per_query(spare, base_width) + sizeof(std::vector<Answer>);
}

WithinRadius::WithinRadius(CpuStream& stream, const PackedRows& queries, const RowsView& query_rows,
                           float radius, Metric metric, const DeniedIds& denied)
    : Candidates(stream, queries, query_rows, metric, spare, denied),
      budget_(stream.budget()),
      radius_key_(sort_key(metric, radius)),
      answers_(query_rows.rows()) {
  for (std::size_t query = 0; query < query_rows.rows(); ++query)
    lower_limit(query, bound().limit_from_key(radius_key_));
}

WithinRadius::~WithinRadius() {
  for (const std::vector<Answer>& answers : answers_) budget_.give_back(answers.capacity() * sizeof(Answer));
}

void WithinRadius::offer(std::size_t query, Answer answer) {
  if (!(answer.key <= radius_key_)) return;
  std::vector<Answer>& answers = answers_[query];
  if (answers.size() == answers.capacity()) {
    const std::size_t before = answers.capacity();
    const std::size_t wanted = std::max(first_answers, 2 * before);
    const std::uint64_t bytes = (wanted - before) * sizeof(Answer);
    budget_.take(bytes);
    try {
      answers.reserve(wanted);
    } catch (...) {
      budget_.give_back(bytes);
      throw;
    }
  }
  answers.push_back(answer);
}

std::unique_ptr<Candidates> WithinRadius::start_subset(const PackedRows& queries, const RowsView& query_rows,
                                                       std::size_t first_query) const {
  return std::make_unique<WithinRadius>(stream(), queries, query_rows, distance_of_key(metric(), radius_key_),
                                        metric(), denied().from_query(first_query, query_rows.rows()));
}

std::span<const Answer> WithinRadius::evaluate_rest(std::size_t query) {
  drop_excluded(query);
  evaluate_candidates(query);
  return answers_[query];
}

std::span<const Answer> WithinRadius::finish(std::size_t query) {
  evaluate_rest(query);
  std::sort(answers_[query].begin(), answers_[query].end());
  return answers_[query];
}

std::unique_ptr<Collector> start_range(Stream& stream, const RangeArgs& args) {
  return std::make_unique<WithinRadius>(cpu_stream(stream), static_cast<const PackedRows&>(args.queries),
                                        args.query_rows, args.radius, args.metric, args.denied);
}

void finish_range(Stream& stream, const FinishRangeArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  auto& found = static_cast<WithinRadius&>(args.found);
  cpu.threads().for_each(found.queries(), [&](std::size_t query) {
    cpu.context.cancel.check();
    const std::span<const Answer> answers = found.finish(query);
    RangeRow& row = args.rows[query];
    const std::size_t before = row.ids.size();
    row.ids.resize(before + answers.size());
    row.distances.resize(before + answers.size());
    write_answers(answers, found.metric(), args.id_offset, std::span(row.ids).subspan(before),
                  std::span(row.distances).subspan(before));
  });
}

}  // namespace nearwise::cpu

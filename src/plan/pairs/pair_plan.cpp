// The tasks of method `pairs` and their estimated costs.
#include <algorithm>

#include "plan/pairs/pair_work.h"

namespace nearwise::plan {
namespace {

constexpr std::uint64_t file_bytes = 8192;

double as_double(std::size_t number) { return static_cast<double>(number); }

std::uint64_t entry_bytes(const GraphWork& work) {
  return work.options.degree * (sizeof(std::uint32_t) + sizeof(float));
}

// Seconds to compare `rows` rows: exactly if few, else within partitions at `part` of the cost of a build.
double seconds_of(std::size_t rows, std::size_t exact_rows, const graph::Tuning& tuning, double part,
                  const GraphCosts& costs) {
  constexpr double partition_pair = 2;  // in pairs of exact search
  const double others = rows <= exact_rows
                            ? as_double(rows) / 2
                            : part * partition_pair * as_double(tuning.overlap * tuning.partition_rows) +
                                  as_double(tuning.measured);
  return as_double(rows) * (costs.gathered + costs.pair * others);
}

PlannedTask cost_of_build(const GraphWork& work, const GraphCosts& costs, std::size_t shard) {
  const std::size_t rows = work.shape.rows_of(shard);
  const graph::Tuning tuning = shard_tuning(work.options);
  PlannedTask task;
  task.read_bytes = rows * work.shape.row_bytes();
  task.written_bytes = rows * entry_bytes(work) + 3 * file_bytes;
  task.seconds = seconds_of(rows, tuning.exact_rows, tuning, 1, costs);
  return task;
}

PlannedTask cost_of_merge(const GraphWork& work, const GraphCosts& costs, const Pairing& pairing) {
  const std::size_t rows = work.shape.rows_of(pairing.left) + work.shape.rows_of(pairing.right);
  const graph::Tuning tuning = pair_tuning(work.options);
  PlannedTask task;
  // Vectors, the shards' own graphs, and the best so far.
  task.read_bytes = rows * (work.shape.row_bytes() + 2 * entry_bytes(work));
  task.written_bytes = rows * entry_bytes(work) + 5 * file_bytes;
  task.seconds = seconds_of(rows, tuning.exact_rows / 2, tuning, 0.5, costs) +
                 2 * as_double(rows * work.options.degree) * costs.merged;
  return task;
}

// The last merge of every shard, without duplicates.
std::vector<std::string> last_versions(const GraphWork& work) {
  const std::size_t rounds = PairSchedule(work.shape.blocks).rounds();
  std::vector<std::string> last;
  for (std::size_t shard = 0; shard < work.shape.blocks; ++shard) {
    const std::string version = version_before(work, shard, rounds).task;
    if (std::ranges::find(last, version) == last.end()) last.push_back(version);
  }
  return last;
}

// Without duplicates.
std::vector<std::string> inputs_of(const GraphWork& work, std::size_t round, const Pairing& pairing) {
  std::vector<std::string> inputs = {build_shard_name(pairing.left), build_shard_name(pairing.right)};
  for (const std::size_t shard : {pairing.left, pairing.right}) {
    const std::string version = version_before(work, shard, round).task;
    if (std::ranges::find(inputs, version) == inputs.end()) inputs.push_back(version);
  }
  return inputs;
}

}  // namespace

void add_pairs(GraphTasks& tasks, const Context& context, const GraphWork& work, const GraphCosts& costs) {
  // Exact search adapts to the whole memory limit.
  const std::uint64_t memory = context.memory_limit();
  tasks.begin_pass(0);
  for (std::size_t shard = 0; shard < work.shape.blocks; ++shard)
    tasks.add(build_shard_name(shard), {}, memory, cost_of_build(work, costs, shard),
              [shard](const Context& own, const GraphWork& of) { build_shard(own, of, shard); });
  const PairSchedule schedule(work.shape.blocks);
  const std::vector<std::string> last = last_versions(work);
  for (std::size_t round = 0; round < schedule.rounds(); ++round)
    for (const Pairing& pairing : schedule.pairs(round)) {
      Task& task = tasks.add(
          merge_pair_name(pairing), inputs_of(work, round, pairing), memory,
          cost_of_merge(work, costs, pairing),
          [round, pairing](const Context& own, const GraphWork& of) { merge_pair(own, of, round, pairing); });
      // `finish` reads the last merges.
      task.is_temporary = std::ranges::find(last, task.planned.name) == last.end();
      task.read_ahead = [of = tasks.work(), pairing](const std::stop_token& stop) {
        prefetch_pair(*of, pairing, stop);
      };
    }
  std::vector<std::string> measured = last;
  measured.emplace_back(sample_name);
  tasks.add(measure_name(0), std::move(measured), measure_memory(work.shape, work.options),
            cost_of_measure(work.shape, costs, work.options.degree),
            [](const Context& own, const GraphWork& of) { measure_graph(own, of, 0); });
}

}  // namespace nearwise::plan

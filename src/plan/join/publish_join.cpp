// finish: the result of a join or a deduplication, in the bytes of one in memory.
#include <vector>

#include "backend/context_state.h"
#include "core/distance.h"
#include "duplicates/duplicate_files.h"
#include "duplicates/group_duplicates.h"
#include "plan/join/join_work.h"

namespace nearwise::plan {
namespace {

// A file of lists of later rows, and the rows that these may be.
struct LaterRows {
  DuplicateLists lists;
  RowRange range;
};

// visit(rows of a block, their pairs): of joins with the block itself and later ones, or of all partitions.
template <typename Visit>
void for_each_joined_block(const Context& context, const JoinWork& work, ProgressMeter& progress,
                           const Visit& visit) {
  for (std::size_t block = 0; block < work.blocks(); ++block) {
    context.state().cancel.check();
    const RowRange rows = work.block(block);
    std::vector<LaterRows> files;
    if (work.is_by_partitions()) {
      files.push_back({{work.file_of(sides_name(block)), rows.count}, {0, work.rows}});
    } else {
      for (std::size_t other = block; other < work.blocks(); ++other)
        files.push_back({{work.file_of(join_name(block, other)), rows.count}, work.block(other)});
    }
    visit(rows, files);
    progress.add(1);
  }
}

}  // namespace

void publish_pairs(const Context& context, const JoinWork& work) {
  // Counts, ids and distances.
  ProgressMeter progress(context.state().options.progress, context.state().clock, work.operation(),
                         3 * work.blocks());
  const auto add_counts = [&](const auto& add) {
    for_each_joined_block(context, work, progress, [&](RowRange rows, const std::vector<LaterRows>& files) {
      for (std::size_t row = 0; row < rows.count; ++row) {
        std::size_t count = 0;
        for (const LaterRows& file : files) count += file.lists.count(row);
        add(count);
      }
    });
  };
  const auto add_pairs = [&](const auto& add) {
    for_each_joined_block(context, work, progress, [&](RowRange rows, const std::vector<LaterRows>& files) {
      for (std::size_t row = 0; row < rows.count; ++row)
        for (const auto& [lists, range] : files) {
          const std::size_t least = std::max(range.first, rows.first + row + 1);
          for (const duplicates::Duplicate& pair : lists.of(row, {least, range.end() - least}))
            add(Id{pair.row}, distance_of_key(work.metric, pair.key));
        }
    });
  };
  duplicates::write_pairs(
      work.files.output,
      {.pairs = {}, .metric = work.metric, .threshold = work.threshold, .provenance = work.provenance},
      {.counts = add_counts, .pairs = add_pairs});
}

void publish_dedup(const Context& context, const JoinWork& work) {
  std::vector<DuplicateLists> files;
  std::size_t sides = 0;
  for (std::size_t block = 0; block < work.blocks(); ++block) {
    files.emplace_back(work.file_of(sides_name(block)), work.block(block).count);
    sides += files.back().pairs();
  }
  const Reservation scores(*context.state().budget, work.scores.size() * sizeof(double));
  DedupOptions options = *work.dedup;
  options.scores = work.scores;
  const duplicates::Groups groups = duplicates::group_duplicates(
      context, work.rows,
      [&](std::size_t row) {
        return files[row / work.block_rows].of(row % work.block_rows, {0, work.rows});
      },
      options);
  SavedDeduplication saved = {.deduplication = {},
                              .metric = work.metric,
                              .threshold = work.threshold,
                              .grouping = options.grouping,
                              .keep = options.keep,
                              .provenance = work.provenance};
  saved.deduplication.pairs = sides / 2;
  duplicates::write_deduplication(
      work.files.output, saved,
      {.rows = work.rows,
       .kept_by = [&](std::size_t row) { return Id{groups.kept_by[row]}; },
       .removed_by = [&](std::size_t row) { return groups.remover(row); },
       .distance = [&](std::size_t row) { return distance_of_key(work.metric, groups.keys[row]); }});
}

}  // namespace nearwise::plan

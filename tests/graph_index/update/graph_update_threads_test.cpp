// Searches while other threads change a graph index.
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <optional>

#include "nearwise/graph_index.h"
#include "support/concurrent_changes.h"

namespace nearwise {
namespace {

struct GraphTraits {
  using Index = GraphIndex;

  static GraphIndex load(const Context& context, const std::filesystem::path& path) {
    return load_graph_index(context, path);
  }
  static GraphSearchOptions range_options(const GraphSearchOptions& options) { return options; }
  static void maintain(const Context& context, GraphIndex& index, std::size_t round) {
    if (round % 3 == 1) index.compact(context);
    if (round % 3 == 2) index.calibrate(context, {.sample = 5});
  }
};

using Changes = support::ConcurrentChanges<GraphTraits>;

const support::Problem& problem() {
  static const support::Problem made = support::make_problem(
      {.kind = support::Kind::normal, .rows = Changes::all_rows, .queries = 24, .dim = 7, .seed = 17});
  return made;
}

GraphIndex built() {
  return GraphIndex::build(support::one_thread(), RowsView(problem().base).slice(0, Changes::base_rows),
                           {.degree = 16}, std::nullopt);
}

TEST(GraphUpdateThreads, ReadersSeeOneWholeState) {
  const Changes changes(problem());
  // A beam as wide as the index: which edges there are must not matter.
  changes.readers_see_one_whole_state(built(), changes.questions({.beam = Changes::all_rows}, 5.0F), 12);
}

TEST(GraphUpdateThreads, ChangesOfSeveralThreadsAreAllThere) {
  Changes(problem()).changes_of_several_threads_are_all_there(built());
}

}  // namespace
}  // namespace nearwise

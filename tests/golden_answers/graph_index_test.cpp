// Graph indexes: built, searched, under filters, saved, changed.
#include "nearwise/graph_index.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "golden_answers/data.h"
#include "golden_answers/golden.h"
#include "io/temporary_folder.h"

namespace nearwise::golden {
namespace {

using support::Rows;
using testing_io::TemporaryFolder;

constexpr std::size_t rows_count = 600;
constexpr std::size_t dim = 24;

TEST(GoldenGraphIndex, EveryTypeAndMetric) {
  const TemporaryFolder folder;
  std::size_t number = 0;
  for (const ElementType type : every_type)
    for (const Metric metric : every_metric) {
      if (!is_due(number++, 7)) continue;
      const Rows base = make_rows(rows_count, dim, 91, type);
      const Rows queries = make_rows(20, dim, 92, type);
      const std::string name = name_of("graph_index", type, metric);
      std::vector<std::uint8_t> mask(rows_count);
      for (std::size_t row = 0; row < rows_count; ++row) mask[row] = row % 3 == 0 ? 1 : 0;
      for (const Context& context : every_context()) {
        GraphIndex index = GraphIndex::build(context, base, {.metric = metric, .degree = 16},
                                             GraphCalibrationOptions{.target_recall = 0.9, .sample = 100});
        expect_answer(name, index.search(context, queries, 10));
        expect_answer(name + ".beam", index.search(context, queries, 5, {.beam = 9}));
        expect_answer(name + ".filter", index.search(context, queries, 10, {.filter = Filter::mask(mask)}));
        const std::filesystem::path path = folder / "index.nw";
        save(index, path);
        expect_container(name, path);
        index.remove(context, std::vector<Id>{3, 500, 100});
        index.add(context, make_rows(80, dim, 93, type));
        index.update(context, std::vector<Id>{7, 610}, make_rows(2, dim, 94, type));
        expect_answer(name + ".changed", index.search(context, queries, 10));
        save(index, path);
        expect_container(name + ".changed", path);
        index.compact(context);
        save(index, path);
        expect_container(name + ".compact", path);
      }
    }
}

}  // namespace
}  // namespace nearwise::golden

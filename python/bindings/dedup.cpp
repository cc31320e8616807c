// Pairs within a threshold, and the removal of near-duplicates, for Python.
#include "dedup.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <filesystem>
#include <optional>
#include <tuple>

#include "results.h"

namespace nearwise::python {
namespace {

NumpyRangeNeighbors pair_arrays(const BorrowedRows& rows, float threshold, const std::string& metric,
                                const Settings& settings, nb::handle progress) {
  const ThresholdJoinOptions options{.metric = parse_metric(metric)};
  return to_numpy(
      result_of(settings, progress, multiplications(rows.view(), rows.view()),
                [&](const Context& own) { return threshold_join(own, rows.view(), threshold, options); }));
}

// kept, groups, removed_by, distances and the number of pairs
using Deduplicated =
    std::tuple<NumpyVector<Id>, NumpyVector<Id>, NumpyVector<Id>, NumpyVector<float>, std::size_t>;

Deduplicated to_arrays(Deduplication&& found) {
  return {to_numpy<Id>(std::move(found.kept)), to_numpy<Id>(std::move(found.groups)),
          to_numpy<Id>(std::move(found.removed_by)), to_numpy<float>(std::move(found.distances)),
          found.pairs};
}

Deduplicated dedup_arrays(const BorrowedRows& rows, float threshold, const std::string& metric,
                          bool keeps_medoids, const std::optional<Scores>& scores, bool connected,
                          const Settings& settings, nb::handle progress) {
  const DedupOptions options = dedup_options(metric, keeps_medoids, scores, connected);
  return to_arrays(
      result_of(settings, progress, multiplications(rows.view(), rows.view()),
                [&](const Context& own) { return dedup(own, rows.view(), threshold, options); }));
}

NumpyRangeNeighbors load_pair_arrays(const std::filesystem::path& path) {
  return to_numpy(result_of([&] { return load_pairs(path); }).pairs);
}

Deduplicated load_dedup_arrays(const std::filesystem::path& path) {
  return to_arrays(result_of([&] { return load_deduplication(path); }).deduplication);
}

}  // namespace

DedupOptions dedup_options(const std::string& metric, bool keeps_medoids, const std::optional<Scores>& scores,
                           bool connected) {
  DedupOptions options{.metric = parse_metric(metric),
                       .grouping = connected ? DuplicateGrouping::connected : DuplicateGrouping::star};
  if (keeps_medoids) options.keep = KeptRow::medoid;
  if (scores) {
    options.keep = KeptRow::scored;
    options.scores = {scores->data(), scores->size()};
  }
  return options;
}

void bind_dedup(nb::module_& module) {
  module.def(
      "threshold_of_similarity",
      [](const std::string& metric, double similarity) {
        return threshold_of_similarity(parse_metric(metric), similarity);
      },
      nb::arg("metric"), nb::arg("similarity"));
  module.def("threshold_join", pair_arrays, nb::arg("rows"), nb::arg("threshold"), nb::arg("metric"),
             nb::arg("settings"), nb::arg("progress").none(), "offsets [rows + 1], ids and distances");
  module.def("dedup", dedup_arrays, nb::arg("rows"), nb::arg("threshold"), nb::arg("metric"),
             nb::arg("keeps_medoids"), nb::arg("scores").none(), nb::arg("connected"), nb::arg("settings"),
             nb::arg("progress").none(), "kept, groups, removed_by, distances [rows] and pairs");
  module.def("load_pairs", load_pair_arrays, nb::arg("path"), "offsets [rows + 1], ids and distances");
  module.def("load_deduplication", load_dedup_arrays, nb::arg("path"),
             "kept, groups, removed_by, distances [rows] and pairs");
}

}  // namespace nearwise::python

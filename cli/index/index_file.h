// Index files: opened, saved with the provenance of the run, and reported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "cli/shared/files.h"
#include "cli/shared/session.h"
#include "cli/shared/work.h"
#include "nearwise/graph_index.h"
#include "nearwise/ivf.h"

namespace nearwise::cli {

// A .nw file of another kind, or another suffix, is Error(invalid_argument).
Ivf open_inverted_file(const Context& context, const std::filesystem::path& path);
// Opens an index of any kind and returns use(index), for an Ivf& or a GraphIndex&.
template <typename Use>
ExitCode with_index(const Context& context, const std::filesystem::path& path, const Use& use) {
  if (inspect_as(path, "an index", {"ivf", "graph_index"}).kind == "graph_index") {
    GraphIndex index = load_graph_index(context, path);
    return use(index);
  }
  Ivf index = load_ivf(context, path);
  return use(index);
}
// Vectors in the file of an inverted file, from its header.
std::uint64_t count_vectors(const std::filesystem::path& index);

// Reports before the work what would fail after it. The output may be the input index, which is replaced at
// the end.
void check_index_output(const std::filesystem::path& output);
void check_dim(const Session& session, std::size_t dim, const std::filesystem::path& path, RowsView vectors);
// Vectors for re-ranking and calibration are found by id: the file needs one for every id of the index.
void check_vectors_by_id(const Session& session, const Ivf& index, const std::filesystem::path& path,
                         RowsView vectors);

// At most a few seconds of work, and large enough that lists rarely grow.
inline constexpr std::size_t added_at_once = 65536;
// Adds in batches and returns how many. ids: one per vector, or none.
template <typename Index>
std::size_t add_vectors(Work& work, Index& index, RowsView vectors, std::span<const Id> ids,
                        OnDuplicate on_duplicate) {
  std::size_t added = 0;
  work.run_batches(vectors, added_at_once, [&](const Context& context, RowsView batch, std::size_t first) {
    added += index.add(context, batch, ids.empty() ? ids : ids.subspan(first, batch.rows()), on_duplicate);
  });
  return added;
}

// Saves the index; the provenance of this run is added to that of its training.
template <typename Index>
void save_index(const Session& session, Index& index, const Provenance& run,
                const std::filesystem::path& output) {
  Provenance provenance = index.provenance();
  for (const auto& [key, text] : run) provenance.insert_or_assign(key, text);
  index.set_provenance(std::move(provenance));
  const Interrupt::Protection protection = session.interrupt->protect();
  save(index, output);
}

// A warning if the recall of searches for k with default probes is below the target, or unknown.
void remark_on_recall(const Session& session, const Ivf& index, std::size_t k, bool codes_only);

// The last word on an index that was written; `more` is added to the JSON, `what` to the sentence.
ExitCode report_index(const Session& session, const Ivf& index, const std::filesystem::path& output,
                      const Json& more, const std::string& what);
ExitCode report_index(const Session& session, const GraphIndex& index, const std::filesystem::path& output,
                      const Json& more, const std::string& what);

}  // namespace nearwise::cli

// Index files: opened, saved with the provenance of the run, and reported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "cli/shared/files.h"
#include "cli/shared/session.h"
#include "cli/shared/work.h"
#include "nearwise/ivf.h"

namespace nearwise::cli {

// A .nw file of another kind, or another suffix, is Error(invalid_argument).
Ivf open_index(const Context& context, const std::filesystem::path& path);
// Vectors in an index file, from its header.
std::uint64_t count_vectors(const std::filesystem::path& index);

// Reports before the work what would fail after it. The output may be the input index, which is replaced at
// the end.
void check_index_output(const std::filesystem::path& output);
void check_dim(const Session& session, std::size_t dim, const std::filesystem::path& path, RowsView vectors);
// Vectors for re-ranking and calibration are found by id: the file needs one for every id of the index.
void check_vectors_by_id(const Session& session, const Ivf& index, const std::filesystem::path& path,
                         RowsView vectors);

// Adds in batches and returns how many. ids: one per vector, or none.
std::size_t add_vectors(Work& work, Ivf& index, RowsView vectors, std::span<const Id> ids,
                        OnDuplicate on_duplicate);

// Saves the index; the provenance of this run is added to that of its training.
void save_index(const Session& session, Ivf& index, const Provenance& run,
                const std::filesystem::path& output);

// A warning if the recall of searches for k with default probes is below the target, or unknown.
void remark_on_recall(const Session& session, const Ivf& index, std::size_t k, bool codes_only);

// The last word on an index that was written; `more` is added to the JSON, `what` to the sentence.
ExitCode report_index(const Session& session, const Ivf& index, const std::filesystem::path& output,
                      const Json& more, const std::string& what);

}  // namespace nearwise::cli

// Inverted files as commands take and leave them, and the files of ids that go with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cli/shared/machine_options.h"
#include "cli/shared/progress_bar.h"
#include "cli/shared/result_file.h"
#include "cli/shared/session.h"
#include "nearwise/context.h"
#include "nearwise/ivf.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise::cli {

// As open_context(), for commands that tell of their progress themselves.
Context open_silent_context(const MachineArguments& arguments, std::uint64_t seed = 0);

// A .nw file of another kind, or of another suffix, is Error(invalid_argument).
Ivf open_index(const Context& context, const std::filesystem::path& path);

// Of such a file, without reading them.
std::uint64_t count_index_rows(const std::filesystem::path& path);

// Throws before the work what would fail after it. The output may be the index itself: it is replaced when it is complete.
void check_index_output(const std::filesystem::path& output);

// Ids in the order of the file, whatever its shape: .npy .ivecs .ibin, or .txt with one in every line.
std::vector<Id> read_ids(const std::filesystem::path& path);

// In batches, so that there is progress to see. ids: one per row, or none. NaN and infinity are told by row and column.
void add_rows(const Session& session, const Context& context, Ivf& index, RowsView rows,
              std::span<const Id> ids, ProgressBar& bar);

// --recall must be above 0 and at most 1.
void check_recall(double recall);
// With a bar of its own. `recall` is the one wanted.
void measure_index(Session& session, const Context& machine, Ivf& index, RowsView rows,
                   const CalibrationOptions& options);

// Adds a run (describe_run(), asked before the work) to where the index comes from; what its training has recorded stays.
void record_run(const Provenance& run, Ivf& index);

// Rows, lists, and so on, of an index that has just been written.
Json describe_index(const Ivf& index, const std::filesystem::path& output);
// Prints the JSON, or the words "wrote ... to ..." as a remark, with what was measured.
void tell_of_index(const Session& session, const Json& json, const Ivf& index,
                   const std::filesystem::path& output, const std::string& what);

}  // namespace nearwise::cli

// The work folder of a plan: made before the first task, tidied after the last.
#pragma once

#include <filesystem>

#include "plan/engine/plan_state.h"

namespace nearwise::plan {

// Makes the folder if it is missing, closed to those who must not read the vectors: it holds copies of them.
// It survives a power loss before the first task is recorded in it. Files that the plan makes from then on
// are closed to them too (Plan::State::permitted), also in a folder that was there before. Returns its path.
// Throws Error(cannot_create | io).
std::filesystem::path make_work_folder(const Plan::State& state);

// Removes what interrupted attempts left in the folder and next to the result, which may be as large as the
// outputs.
void sweep_temporaries(const Plan::State& state);

}  // namespace nearwise::plan

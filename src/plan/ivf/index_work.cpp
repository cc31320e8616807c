#include "plan/ivf/index_work.h"

#include <fmt/format.h>

#include <numeric>
#include <vector>

#include "backend/stages.h"
#include "ivf/ivf_state.h"
#include "nearwise/ivf.h"

namespace nearwise::plan {

std::string add_name(std::size_t block) { return fmt::format("add-{:04}", block); }

void train_index(const Context& context, const IndexWork& work) {
  const PlanInput input = work.input(context);
  save(Ivf::train(context, input.all(), work.options.index), work.file_of(train_index_name));
}

void add_block(const Context& context, const IndexWork& work, std::size_t block) {
  const PlanInput input = work.input(context);
  const std::size_t first = block * work.block_rows;
  std::vector<Id> ids(work.rows_of(block));
  std::iota(ids.begin(), ids.end(), static_cast<Id>(first));
  Ivf index = load_ivf(context, work.file_of(train_index_name));
  index.add(context, input.slice(first, ids.size()), ids);
  save(index, work.file_of(add_name(block)));
}

void gather_blocks(const Context& context, const IndexWork& work) {
  std::vector<std::filesystem::path> parts;
  for (std::size_t block = 0; block < work.blocks(); ++block) parts.push_back(work.file_of(add_name(block)));
  merge_ivf_files(context, parts, work.file_of(gather_name));
}

void finish_index(const Context& context, const IndexWork& work) {
  const PlanInput input = work.input(context);
  Ivf index = load_ivf(context, work.file_of(gather_name));
  // A single vector has no neighbours.
  // A tenth is left for writing the index.
  Stages stages(context, "plan_index");
  // The plan has counted the memory (index_shape.h).
  if (index.size() >= 2)
    IvfInternals::calibrate(index, stages.next(9, 1), input.all(), work.options.calibration,
                            MemoryCheck::by_caller);
  std::map<std::string, std::string> provenance = index.provenance();
  provenance.insert(work.options.provenance.begin(), work.options.provenance.end());
  index.set_provenance(std::move(provenance));
  save(index, work.files.output);
}

}  // namespace nearwise::plan

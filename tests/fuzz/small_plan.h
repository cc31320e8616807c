// Small plans of every kind, whose files are the seeds of fuzz_work_files and fuzz_manifest.
#pragma once

#include <array>
#include <filesystem>
#include <vector>

#include "nearwise/plan.h"
#include "nearwise/plan_join.h"
#include "nearwise/vector_file.h"

namespace nearwise::fuzz {

inline const Context& small_plan_context() {
  static const Context made = Context::cpu({.threads = 1, .memory_limit = std::uint64_t{24} << 20});
  return made;
}

// Their work folders.
inline constexpr std::array<const char*, 8> small_plans() {
  return {"partitions", "pairs", "index",           "graph_index",
          "join",       "dedup", "join_partitions", "dedup_partitions"};
}

inline Plan small_plan(const std::filesystem::path& folder, const std::filesystem::path& name) {
  const PlanFiles files = {
      .vectors = folder / "vectors.fbin", .work = folder / name, .output = folder / (name.string() + ".nw")};
  if (name == "index")
    return plan_index(
        small_plan_context(), files,
        {.index = {.lists = 4, .encoding = Pq{.code_bytes = 2, .bits = 4}}, .calibration = {.queries = 10}});
  if (name == "graph_index")
    return plan_graph_index(small_plan_context(), files,
                            {.index = {.degree = 16}, .calibration = {.sample = 10}});
  if (name == "join") return plan_threshold_join(small_plan_context(), files, 2.0F);
  if (name == "dedup") return plan_dedup(small_plan_context(), files, 2.0F);
  if (name == "join_partitions")
    return plan_threshold_join(small_plan_context(), files, 2.0F, {.method = JoinMethod::partitions});
  if (name == "dedup_partitions")
    return plan_dedup(small_plan_context(), files, 2.0F, {.method = JoinMethod::partitions});
  return plan_graph(
      small_plan_context(), files,
      {.degree = 3, .method = name == "pairs" ? GraphPlanMethod::pairs : GraphPlanMethod::partitions});
}

inline void run_small_plans(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  constexpr std::size_t rows = 120;
  constexpr std::size_t dim = 3;
  std::vector<float> values(rows * dim);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i % 101) / 10;
  VectorWriter writer(folder / "vectors.fbin", ElementType::f32, dim);
  writer.append(MatrixView<const float>(values.data(), rows, dim));
  writer.commit();
  for (const char* const name : small_plans()) small_plan(folder, name).run(small_plan_context());
}

}  // namespace nearwise::fuzz

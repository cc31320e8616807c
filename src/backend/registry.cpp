#include <string>
#include <vector>

#include "backend/backend.h"
#include "nearwise/machine.h"

namespace nearwise {

std::vector<const Backend*> backends() {
  std::vector<const Backend*> found = {cpu_backend()};
  if (cuda_backend() != nullptr) found.push_back(cuda_backend());
  return found;
}

std::vector<std::string> supported_operations(const Ops& ops) {
  std::vector<std::string> names;
  const auto add = [&](const char* name, bool present) {
    if (present) names.emplace_back(name);
  };
  add("knn_costs", ops.knn_costs != nullptr);
  add("holds_bytes", ops.holds_bytes != nullptr);
  add("fetch_rows", ops.fetch_rows != nullptr);
  add("prepare_rows", ops.prepare_rows != nullptr);
  add("start_top_k", ops.start_top_k != nullptr);
  add("start_range", ops.start_range != nullptr);
  add("knn_block", ops.knn_block != nullptr);
  add("finish_top_k", ops.finish_top_k != nullptr);
  add("finish_range", ops.finish_range != nullptr);
  add("knn_direct", ops.knn_direct != nullptr);
  add("self_join_costs", ops.self_join_costs != nullptr);
  add("self_join", ops.self_join != nullptr);
  add("assign_costs", ops.assign_costs != nullptr);
  add("assign", ops.assign != nullptr);
  add("centroid_means_bytes", ops.centroid_means_bytes != nullptr);
  add("centroid_means", ops.centroid_means != nullptr);
  add("list_search_costs", ops.list_search_costs != nullptr);
  add("list_search", ops.list_search != nullptr);
  add("join_costs", ops.join_costs != nullptr);
  add("start_join", ops.start_join != nullptr);
  add("join_groups", ops.join_groups != nullptr);
  add("part_codes_bytes", ops.part_codes_bytes != nullptr);
  add("part_codes", ops.part_codes != nullptr);
  add("part_tables_bytes", ops.part_tables_bytes != nullptr);
  add("part_tables", ops.part_tables != nullptr);
  add("rotate_bytes", ops.rotate_bytes != nullptr);
  add("rotate", ops.rotate != nullptr);
  add("cross_products", ops.cross_products != nullptr);
  add("additive_codes_bytes", ops.additive_codes_bytes != nullptr);
  add("additive_codes", ops.additive_codes != nullptr);
  add("code_sums", ops.code_sums != nullptr);
  add("select_k_bytes", ops.select_k_bytes != nullptr);
  add("select_k", ops.select_k != nullptr);
  add("stream_handle", ops.stream_handle != nullptr);
  add("wait_for_stream", ops.wait_for_stream != nullptr);
  return names;
}

std::string version() { return NEARWISE_VERSION; }

std::vector<std::string> instruction_sets() { return cpu_instruction_sets(); }

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> found;
  for (const Backend* backend : backends()) {
    for (int ordinal = 0; ordinal < backend->device_count(); ++ordinal)
      found.push_back({name(Place{backend->kind, ordinal}), backend->device_model(ordinal),
                       supported_operations(backend->ops)});
  }
  return found;
}

}  // namespace nearwise

// Operation table of the CPU backend.
#include "backend/backend.h"

#include <fstream>

#include "backend/cpu/operations.h"
#include "backend/cpu/stream.h"

namespace nearwise {
namespace {

std::string model_name(int) {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

const Backend* cpu_backend() {
  static const Backend backend = {
      .name = "cpu",
      .kind = DeviceKind::cpu,
      .device_count = [] { return 1; },
      .device_model = model_name,
      .check_options = [](const ContextOptions& options) { cpu::choose_instruction_set(options.isa); },
      .open = [](Context::State& state) -> std::unique_ptr<Stream> {
        return std::make_unique<cpu::CpuStream>(state);
      },
      .ops = {.knn_costs = cpu::knn_costs,
              .narrowest_type = cpu::narrowest_type,
              .prepare_rows = cpu::prepare_rows,
              .start_top_k = cpu::start_top_k,
              .start_range = cpu::start_range,
              .knn_block = cpu::knn_block,
              .finish_top_k = cpu::finish_top_k,
              .finish_range = cpu::finish_range,
              .knn_direct = cpu::knn_direct,
              .self_join_costs = cpu::self_join_costs,
              .self_join = cpu::self_join,
              .assign_costs = cpu::assign_costs,
              .assign = cpu::assign,
              .centroid_means_bytes = cpu::centroid_means_bytes,
              .centroid_means = cpu::centroid_means,
              .list_search_costs = cpu::list_search_costs,
              .list_search = cpu::list_search,
              .join_costs = cpu::join_costs,
              .start_join = cpu::start_join,
              .join_groups = cpu::join_groups,
              .prune_edges = cpu::prune_edges,
              .prepare_graph = cpu::prepare_graph,
              .search_graph = cpu::search_graph,
              .part_codes_bytes = cpu::part_codes_bytes,
              .part_codes = cpu::part_codes,
              .part_tables_bytes = cpu::part_tables_bytes,
              .part_tables = cpu::part_tables,
              .rotate_bytes = cpu::rotate_bytes,
              .rotate = cpu::rotate,
              .cross_products = cpu::cross_products,
              .additive_codes_bytes = cpu::additive_codes_bytes,
              .additive_codes = cpu::additive_codes,
              .additive_search_bytes = cpu::additive_search_bytes,
              .additive_search = cpu::additive_search,
              .select_k_bytes = cpu::select_k_bytes,
              .select_k = cpu::select_k},
  };
  return &backend;
}

std::vector<std::string> cpu_instruction_sets() {
  std::vector<std::string> names;
  for (const cpu::InstructionSet set : cpu::available_instruction_sets()) names.emplace_back(name(set));
  return names;
}

}  // namespace nearwise

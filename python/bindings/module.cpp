// The extension module nearwise._core.
#include "bindings.h"

NB_MODULE(_core, module) {
  using namespace nearwise::python;
  // A daemon thread that is still searching at exit keeps its vectors: not a leak worth a warning.
  nanobind::set_leak_warnings(false);
  module.doc() = "The C++ side of nearwise. Private: use the package.";
  bind_error(module);
  bind_matrix(module);
  bind_choose_index(module);
  bind_context(module);
  bind_additive_quantizer(module);
  bind_device_memory(module);
  bind_filter(module);
  bind_exact(module);
  bind_dedup(module);
  bind_ivf(module);
  bind_graph_index(module);
  bind_kmeans(module);
  bind_kmeans_parts(module);
  bind_knn_graph(module);
  bind_smoothest_path(module);
  bind_graph_structure(module);
  bind_graph_export(module);
  bind_plan(module);
  bind_prepared_base(module);
  bind_product_quantizer(module);
  bind_rotation(module);
  bind_optimized_product_quantizer(module);
  bind_merge_neighbors(module);
  bind_select_k(module);
  bind_machine(module);
  bind_vector_file(module);
  bind_storage(module);
}

// Operation table of the CUDA backend.
#include "backend/cuda/backend.h"

#include "backend/cuda/device/encoding.h"
#include "backend/cuda/device/error.h"
#include "backend/cuda/device/stream.h"
#include "backend/cuda/operation_counts.h"
#include "backend/cuda/operations.h"
#include "core/check.h"

namespace nearwise {
namespace {

// A machine without a GPU or a driver has no devices; that is not an error.
int count_devices() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorNoDevice || status == cudaErrorInsufficientDriver) {
    gpu::ignore(status);
    return 0;
  }
  gpu::check(status, "counting devices");
  return count;
}

std::string model_name(int ordinal) {
  cudaDeviceProp properties;
  gpu::check(cudaGetDeviceProperties(&properties, ordinal), "describing a device", ordinal);
  return fmt::format("{}, compute capability {}.{}, {} MiB", properties.name, properties.major,
                     properties.minor, properties.totalGlobalMem >> 20);
}

Place locate(const void* memory) {
  if (count_devices() == 0) return {};
  cudaPointerAttributes attributes;
  gpu::check(cudaPointerGetAttributes(&attributes, memory), "locating memory");
  if (attributes.type != cudaMemoryTypeDevice && attributes.type != cudaMemoryTypeManaged) return {};
  return {DeviceKind::cuda, attributes.device};
}

void check_cuda_options(const ContextOptions& options) {
  static_cast<void>(gpu::parse_encoding(options.isa));
}

}  // namespace

const Backend& gpu::backend() {
  static const Backend backend = {
      .name = "cuda",
      .kind = DeviceKind::cuda,
      .device_count = count_devices,
      .device_model = model_name,
      .check_options = check_cuda_options,
      .open = [](Context::State& state) -> std::unique_ptr<Stream> {
        return std::make_unique<gpu::CudaStream>(state);
      },
      .place_of = locate,
      .ops = gpu::counted({.knn_costs = gpu::knn_costs,
                           .fetch_rows = gpu::fetch_rows,
                           .prepare_rows = gpu::prepare_rows,
                           .start_top_k = gpu::start_top_k,
                           .knn_block = gpu::knn_block,
                           .finish_top_k = gpu::finish_top_k,
                           .assign_costs = gpu::assign_costs,
                           .assign = gpu::assign,
                           .centroid_means_bytes = gpu::centroid_means_bytes,
                           .centroid_means = gpu::centroid_means,
                           .list_search_costs = gpu::list_search_costs,
                           .list_search = gpu::list_search,
                           .join_costs = gpu::join_costs,
                           .start_join = gpu::start_join,
                           .join_groups = gpu::join_groups,
                           .join_neighborhoods_bytes = gpu::join_neighborhoods_bytes,
                           .join_neighborhoods = gpu::join_neighborhoods,
                           .prune_edges = gpu::prune_edges,
                           .prepare_graph = gpu::prepare_graph,
                           .search_graph = gpu::search_graph,
                           .part_codes_bytes = gpu::part_codes_bytes,
                           .part_codes = gpu::part_codes,
                           .part_tables_bytes = gpu::part_tables_bytes,
                           .part_tables = gpu::part_tables,
                           .rotate_bytes = gpu::rotate_bytes,
                           .rotate = gpu::rotate,
                           .cross_products = gpu::cross_products,
                           .additive_codes_bytes = gpu::additive_codes_bytes,
                           .additive_codes = gpu::additive_codes,
                           .additive_search_bytes = gpu::additive_search_bytes,
                           .additive_search = gpu::additive_search,
                           .select_k_bytes = gpu::select_k_bytes,
                           .select_k = gpu::select_k,
                           .stream_handle = gpu::stream_handle,
                           .wait_for_stream = gpu::wait_for_stream,
                           .prepare_lists = gpu::prepare_lists,
                           .search_prepared_lists = gpu::search_prepared_lists}),
  };
  return backend;
}

const CudaBackend& gpu::cuda_functions() {
  static const CudaBackend functions = {
      .backend = &backend(),
      .driver = driver,
      .device = device,
      .operation_calls = operation_calls,
      .copy_to_device = copy_to_device,
  };
  return functions;
}

}  // namespace nearwise

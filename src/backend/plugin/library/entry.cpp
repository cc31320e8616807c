// The function that the plugin exports.
#include "backend/plugin/library/base_calls.h"
#include "backend/plugin/plugin.h"

namespace nearwise {
namespace {

const CudaBackend& start(const BaseFunctions& base) {
  set_base_functions(base);
  return gpu::cuda_functions();
}

}  // namespace
}  // namespace nearwise

extern "C" [[gnu::visibility("default")]] const nearwise::PluginEntry* nearwise_cuda_backend();

const nearwise::PluginEntry* nearwise_cuda_backend() {
  static const nearwise::PluginEntry entry = {.build_id = nearwise::build_id(), .start = nearwise::start};
  return &entry;
}

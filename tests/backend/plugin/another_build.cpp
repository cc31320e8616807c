// A plugin of another build, of which nothing but the id may be used.
#include <cstdlib>

#include "backend/plugin/plugin.h"

namespace {

const nearwise::CudaBackend& refuse(const nearwise::BaseFunctions&) { std::abort(); }

}  // namespace

extern "C" [[gnu::visibility("default")]] const nearwise::PluginEntry* nearwise_cuda_backend();

const nearwise::PluginEntry* nearwise_cuda_backend() {
  static constexpr nearwise::PluginEntry entry = {.build_id = "0.1.9-0123456789abcdef", .start = refuse};
  return &entry;
}

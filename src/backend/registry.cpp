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

std::vector<Operation> operations(const Ops& ops) {
  return {
#define OPERATION(result, name, parameters) {#name, ops.name != nullptr},
#include "backend/operations.def"
#undef OPERATION
  };
}

std::string version() { return NEARWISE_VERSION; }

std::vector<std::string> instruction_sets() { return cpu_instruction_sets(); }

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> found;
  for (const Backend* backend : backends()) {
    for (int ordinal = 0; ordinal < backend->device_count(); ++ordinal) {
      DeviceInfo& device = found.emplace_back();
      device.name = name(Place{backend->kind, ordinal});
      device.model = backend->device_model(ordinal);
      for (const auto& [operation, implemented] : operations(backend->ops))
        (implemented ? device.operations : device.missing_operations).push_back(operation);
    }
  }
  return found;
}

}  // namespace nearwise

// What the build found on this machine, for Python.
#include "nearwise/machine.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "nearwise/cuda_device.h"
#include "results.h"

namespace nearwise::python {
namespace {

nb::dict describe(const CudaDriver& driver) {
  nb::dict result;
  result["driver_version"] = driver.driver_version;
  result["runtime_version"] = driver.runtime_version;
  result["problem"] = driver.problem;
  result["library"] = driver.library;
  return result;
}

nb::dict machine() {
  const std::vector<ScanInfo> scans = without_lock([] { return measure_scans(); });
  nb::list device_list;
  for (const DeviceInfo& device : devices()) {
    nb::dict entry;
    entry["name"] = device.name;
    entry["model"] = device.model;
    entry["operations"] = device.operations;
    device_list.append(entry);
  }
  nb::list scan_list;
  for (const ScanInfo& scan : scans) {
    const std::string_view rows = name(scan.rows);
    nb::dict entry;
    entry["rows"] = nb::str(rows.data(), rows.size());
    entry["multiplied_as"] = scan.multiplied_as;
    entry["gflops"] = scan.gflops;
    scan_list.append(entry);
  }
  nb::dict result;
  result["version"] = version();
  result["instruction_sets"] = instruction_sets();
  result["devices"] = device_list;
  result["cuda"] = describe(without_lock([] { return cuda_driver(); }));
  result["scans"] = scan_list;
  return result;
}

// What `nearwise gpu-check` reports of the driver and of device cuda:0, 1, ...
nb::dict cuda() {
  nb::dict result = describe(without_lock([] { return cuda_driver(); }));
  nb::list device_list;
  for (const DeviceInfo& device : devices()) {
    if (device.name == "cpu") continue;
    const int ordinal = static_cast<int>(device_list.size());
    const CudaDevice properties = without_lock([ordinal] { return cuda_device(ordinal); });
    nb::dict entry;
    entry["device"] = device.name;
    entry["name"] = properties.name;
    entry["compute_capability"] = properties.compute_capability;
    entry["code_version"] = properties.code_version;
    entry["ptx_version"] = properties.ptx_version;
    entry["multiprocessors"] = properties.multiprocessors;
    entry["clock_khz"] = properties.clock_khz;
    entry["memory_clock_khz"] = properties.memory_clock_khz;
    entry["memory_bus_bits"] = properties.memory_bus_bits;
    entry["memory_bytes"] = properties.memory_bytes;
    entry["free_bytes"] = properties.free_bytes;
    entry["l2_cache_bytes"] = properties.l2_cache_bytes;
    entry["has_memory_pools"] = properties.has_memory_pools;
    entry["reads_host_memory"] = properties.reads_host_memory;
    entry["operations"] = device.operations;
    device_list.append(entry);
  }
  result["devices"] = device_list;
  return result;
}

nb::dict operation_calls() {
  nb::dict calls;
  for (const OperationCalls& operation : cuda_operation_calls())
    calls[operation.name.c_str()] = operation.calls;
  return calls;
}

}  // namespace

void bind_machine(nb::module_& module) {
  module.def("version", version, "The library's version.");
  module.def("instruction_sets", instruction_sets, "Accepted as isa, best first.");
  module.def("machine", machine, "Version, instruction sets, devices, CUDA and measured scans.");
  module.def("cuda", cuda,
             "The driver, why no device can be used or an empty text, and the properties of devices.");
  module.def("set_cuda_library", set_cuda_library, nb::arg("path"), "The file of the CUDA backend.");
  module.def("cuda_operation_calls", operation_calls, "How often each operation has run on CUDA devices.");
}

}  // namespace nearwise::python

// What the build found on this machine, for Python.
#include "nearwise/machine.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "results.h"

namespace nearwise::python {
namespace {

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
  result["scans"] = scan_list;
  return result;
}

}  // namespace

void bind_machine(nb::module_& module) {
  module.def("version", version, "The library's version.");
  module.def("instruction_sets", instruction_sets, "Accepted as isa, best first.");
  module.def("machine", machine, "Version, instruction sets, devices and measured scans.");
}

}  // namespace nearwise::python

// Version, devices and instruction sets: for `nearwise info`, bug reports and tests.
#pragma once

#include <string>
#include <vector>

#include "nearwise/export.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

std::string version();

// Instruction sets compiled into this build that this CPU can run, best first ("amx", "avx512_bf16",
// "avx512_vnni", "avx512", "avx_vnni", "avx2", "sse4", "portable", or "neon", ...). Any of them is accepted
// as ContextOptions::isa.
std::vector<std::string> instruction_sets();

struct DeviceInfo {
  std::string name;  // "cpu", "cuda:0"
  std::string model;
  // The internal operations that its backend implements, and those that it lacks: "start_range" is missing
  // where range_search is not supported.
  std::vector<std::string> operations;
  std::vector<std::string> missing_operations;
};
std::vector<DeviceInfo> devices();

// Screening products of exact search on the CPU: the arithmetic used for an element type, and its speed on
// one thread.
struct ScanInfo {
  ElementType rows = ElementType::f32;
  std::string multiplied_as;  // "f32", "bf16" or "integers"
  double gflops = 0;          // measured, vectors in cache
};
// isa: as ContextOptions::isa.
std::vector<ScanInfo> measure_scans(const std::string& isa = "");

}  // namespace nearwise

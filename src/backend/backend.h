// The seam between algorithms and hardware: a backend is a table of operations on streams.
//
// A null entry means "not supported by this backend": data that `nearwise info` prints and tests check.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/context_state.h"
#include "backend/ops.h"
#include "backend/strips.h"

namespace nearwise {

// One operation's view of a device: its context and the backend's own state. Not shared by threads.
class Stream {
 public:
  explicit Stream(Context::State& state) : context(state) {}
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Context::State& context;
};

struct Backend {
  std::string_view name;
  DeviceKind kind;
  int (*device_count)();
  std::string (*device_model)(int ordinal);
  // Throws Error(invalid_argument) for options the device cannot honour (an unknown instruction set).
  void (*check_options)(const ContextOptions& options);
  std::unique_ptr<Stream> (*open)(Context::State& context);
  // The device of this backend that owns the memory, or the host. Null: the backend has no memory of its own.
  Place (*place_of)(const void* memory) = nullptr;
  Ops ops;
};

const Backend* cpu_backend();
const Backend* cuda_backend();  // nullptr in a build without it

// The backends of this build, the CPU first.
std::vector<const Backend*> backends();

// One entry of operations.def, and whether a backend implements it.
struct Operation {
  std::string name;
  bool implemented = false;
};
std::vector<Operation> operations(const Ops& ops);

// With the threads and the instruction set of the context, whatever its device.
void subtract_products(Context::State& context, const SubtractProductsArgs& args);

// The instruction sets of the CPU backend, best first.
std::vector<std::string> cpu_instruction_sets();

}  // namespace nearwise

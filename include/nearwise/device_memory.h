// Interoperability with other libraries' device arrays: which device owns an array, and when its content is
// ready.
//
// Operations of nearwise run on their own streams, do not synchronise with other streams, and have finished
// when they return. Another library's work on an array must therefore finish before the array is passed to
// nearwise: the functions here wait for it. No synchronisation is needed afterwards.
#pragma once

#include <cstdint>
#include <memory>

#include "nearwise/context.h"
#include "nearwise/export.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

// The device that owns the memory (managed memory: the device it was allocated for), or the host.
Place place_of(const void* memory);

// Waits for all work queued on a stream of the context's device; throws Error(device) if it failed. `stream`
// is a cudaStream_t as a number; 1 is the legacy default stream, 2 the per-thread default stream.
void wait_for_stream(const Context& context, std::uintptr_t stream);

// A stream of the context's device on which another library produces an array: pass handle() to DLPack's
// `__dlpack__(stream=...)`, then call wait().
class ExchangeStream {
 public:
  explicit ExchangeStream(const Context& context);
  ExchangeStream(ExchangeStream&&) noexcept;
  ExchangeStream& operator=(ExchangeStream&&) noexcept;
  ~ExchangeStream();

  std::uintptr_t handle() const;
  void wait() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nearwise

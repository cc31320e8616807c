// Arrays on a device that other libraries made: where they lie, and when they are complete.
//
// Operations of nearwise work on streams of their own that wait for no other, and are complete when they return. So the
// work of another library on an array must be complete before the array is passed on: the functions here wait for it.
// Afterwards there is nothing to wait for.
#pragma once

#include <cstdint>
#include <memory>

#include "nearwise/context.h"
#include "nearwise/types.h"

namespace nearwise {

// The device whose memory this is (managed memory: for which it was allocated), or the host.
Place place_of(const void* memory);

// Waits until all that is queued on a stream of the context's device is done; throws what it failed with. `stream` is a
// cudaStream_t as a number: also 1, the legacy default stream, or 2, the calling thread's.
void wait_for_stream(const Context& context, std::uintptr_t stream);

// A stream of the context's device on which another library makes an array ready: handle() is what DLPack's
// `__dlpack__(stream=...)` expects, and wait() the other half of the bargain.
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

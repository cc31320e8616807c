#include "nearwise/device_memory.h"

#include "backend/dispatch.h"

namespace nearwise {

struct ExchangeStream::State {
  Context context;  // the stream refers to it
  std::unique_ptr<Stream> stream;
};

ExchangeStream::ExchangeStream(const Context& context)
    : state_(std::make_unique<State>(State{context, open_stream(context)})) {}
ExchangeStream::ExchangeStream(ExchangeStream&&) noexcept = default;
ExchangeStream& ExchangeStream::operator=(ExchangeStream&&) noexcept = default;
ExchangeStream::~ExchangeStream() = default;

std::uintptr_t ExchangeStream::handle() const {
  return dispatch(&Ops::stream_handle, "stream_handle", *state_->stream);
}

void ExchangeStream::wait() const {
  dispatch(&Ops::wait_for_stream, "wait_for_stream", *state_->stream, handle());
}

void wait_for_stream(const Context& context, std::uintptr_t stream) {
  const auto own = open_stream(context);
  dispatch(&Ops::wait_for_stream, "wait_for_stream", *own, stream);
}

Place place_of(const void* memory) {
  for (const Backend* backend : backends())
    if (backend->place_of != nullptr)
      if (const Place place = backend->place_of(memory); place != Place{}) return place;
  return {};
}

}  // namespace nearwise

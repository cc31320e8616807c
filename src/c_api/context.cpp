// Contexts of the C interface.
#include "nearwise/context.h"

#include <string>

#include "c_api/arguments.h"
#include "c_api/call.h"
#include "c_api/objects.h"

using nearwise::Context;
using nearwise::c_api::call;
using nearwise::c_api::deref;

nearwise_status nearwise_context_create(const nearwise_context_options* options, nearwise_context** context) {
  constexpr const char* name = "nearwise_context_create";
  return call([&] {
    nearwise_context*& out = deref(name, "context", context);
    const nearwise_context_options given = nearwise::c_api::options_of(name, options);
    nearwise::require(given.threads >= 0, "{}: threads must be at least 0, got {}", name, given.threads);
    out = new nearwise_context{
        Context::on(given.device == nullptr ? "cpu" : given.device,
                    {.threads = given.threads, .memory_limit = given.memory_limit, .seed = given.seed})};
  });
}

void nearwise_context_destroy(nearwise_context* context) { delete context; }

nearwise_status nearwise_context_cancel(nearwise_context* context) {
  return call([&] { deref("nearwise_context_cancel", "context", context).context.cancel(); });
}

nearwise_status nearwise_context_memory(const nearwise_context* context, uint64_t* used, uint64_t* peak) {
  return call([&] {
    const Context& own = deref("nearwise_context_memory", "context", context).context;
    if (used != nullptr) *used = own.memory_used();
    if (peak != nullptr) *peak = own.memory_peak();
  });
}

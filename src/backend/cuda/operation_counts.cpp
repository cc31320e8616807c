#include "backend/cuda/operation_counts.h"

#include <atomic>
#include <utility>

#include "backend/cuda/backend.h"

namespace nearwise::gpu {
namespace {

// A tag for each operation: several have the same type.
namespace tags {
#define OPERATION(result, name, parameters) struct name;
#include "backend/operations.def"
#undef OPERATION
}  // namespace tags

template <typename Tag, typename Function>
struct Counted;

template <typename Tag, typename Result, typename... Arguments>
struct Counted<Tag, Result (*)(Arguments...)> {
  static inline Result (*function)(Arguments...) = nullptr;
  static inline std::atomic<std::uint64_t> calls = 0;

  static Result call(Arguments... arguments) {
    calls.fetch_add(1, std::memory_order_relaxed);
    return function(std::forward<Arguments>(arguments)...);
  }
};

template <typename Tag, typename Function>
void count(Function& operation) {
  if (operation == nullptr) return;
  Counted<Tag, Function>::function = operation;
  operation = Counted<Tag, Function>::call;
}

}  // namespace

Ops counted(Ops ops) {
#define OPERATION(result, name, parameters) count<tags::name>(ops.name);
#include "backend/operations.def"
#undef OPERATION
  return ops;
}

std::vector<OperationCalls> operation_calls() {
  const Ops& ops = backend().ops;
  std::vector<OperationCalls> found;
#define OPERATION(result, name, parameters) \
  if (ops.name != nullptr) found.push_back({#name, Counted<tags::name, decltype(Ops::name)>::calls.load()});
#include "backend/operations.def"
#undef OPERATION
  return found;
}

}  // namespace nearwise::gpu

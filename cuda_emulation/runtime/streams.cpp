// Streams and events. Queued work runs only when something waits for it, in an order that depends on the
// seed: code with a missing synchronisation reads poison every time, instead of sometimes on a GPU.
#include <algorithm>
#include <utility>
#include <vector>

#include "cuda_emulation/control.h"
#include "cuda_emulation/engine/failure.h"
#include "cuda_emulation/engine/schedule.h"
#include "cuda_emulation/runtime/device_memory.h"
#include "cuda_emulation/runtime/state.h"

namespace cuda_emulation {
namespace {

bool precedes(const Queue& queue, const Operation& operation) {
  return !queue.operations.empty() && queue.operations.front().number < operation.number;
}

bool can_run(const Queue& queue) {
  if (queue.operations.empty()) return false;
  const Operation& next = queue.operations.front();
  if (next.waits_for != nullptr && next.waits_for->passed < next.event_count) return false;
  const Device& device = runtime().devices[static_cast<std::size_t>(queue.device)];
  if (&queue != &device.legacy) return !queue.blocking || !precedes(device.legacy, next);
  return std::none_of(device.queues.begin(), device.queues.end(), [&](const auto& entry) {
    return entry.first->blocking && precedes(*entry.first, next);
  });
}

std::vector<Queue*> all_queues() {
  std::vector<Queue*> queues;
  for (Device& device : runtime().devices) {
    queues.push_back(&device.legacy);
    for (const auto& entry : device.queues) queues.push_back(entry.first);
  }
  return queues;
}

void pass_event(const Operation& operation) {
  if (operation.records != nullptr)
    operation.records->passed = std::max(operation.records->passed, operation.event_count);
}

// As on a GPU, a failed kernel ends the context: queued work is dropped. Memory is still released.
void abandon_queues() {
  const MemoryAccess open;
  for (Queue* queue : all_queues()) {
    for (const Operation& operation : queue->operations) {
      try {
        if (operation.bookkeeping) operation.bookkeeping();
      } catch (const Failure&) {
        // Only the first finding is reported.
      }
      pass_event(operation);
    }
    queue->operations.clear();
  }
}

void run_next(Queue& queue) {
  const Operation operation = std::move(queue.operations.front());
  queue.operations.pop_front();
  if (operation.work || operation.bookkeeping) {
    const MemoryAccess open;
    if (operation.work) operation.work();
    if (operation.bookkeeping) operation.bookkeeping();
  }
  pass_event(operation);
}

void forget_finished_queues() {
  for (Device& device : runtime().devices)
    std::erase_if(device.queues, [](const auto& entry) {
      return entry.first->destroyed && entry.first->operations.empty();
    });
}

std::uint64_t random_number() {
  std::uint64_t& random = runtime().random;
  random ^= random << 13;
  random ^= random >> 7;
  random ^= random << 17;
  return random;
}

Queue& any_that_can_run() {
  std::vector<Queue*> queues = all_queues();
  std::erase_if(queues, [](const Queue* queue) { return !can_run(*queue); });
  if (queues.empty())
    throw Failure(cudaErrorLaunchTimeout,
                  "streams wait for each other or for an event that is never recorded");
  return *queues[random_number() % queues.size()];
}

std::shared_ptr<Event> find_event(cudaEvent_t handle) {
  const auto found = runtime().events.find(handle);
  return found == runtime().events.end() ? nullptr : found->second;
}

cudaError_t record_failure(const Failure& failure) {
  runtime().failure = failure.status();
  runtime().report = failure.what();
  abandon_queues();
  return failure.status();
}

}  // namespace

Queue* queue_of(cudaStream_t stream) {
  Device& device = runtime().devices[static_cast<std::size_t>(current_device())];
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) return &device.legacy;
  return reinterpret_cast<Queue*>(stream);
}

void push(Queue& queue, Operation operation) {
  operation.number = ++runtime().operations;
  queue.operations.push_back(std::move(operation));
}

cudaError_t run_until(const std::function<bool()>& done, Queue* preferred) {
  try {
    while (!done()) run_next(preferred != nullptr && can_run(*preferred) ? *preferred : any_that_can_run());
  } catch (const Failure& failure) {
    record_failure(failure);
  }
  forget_finished_queues();
  return runtime().failure;
}

cudaError_t run_queue(Queue& queue) {
  return run_until([&] { return queue.operations.empty(); }, &queue);
}

cudaError_t run_device(int device) {
  return run_until(
      [&] {
        const std::vector<Queue*> queues = all_queues();
        return std::all_of(queues.begin(), queues.end(), [&](const Queue* queue) {
          return queue->device != device || queue->operations.empty();
        });
      },
      nullptr);
}

cudaError_t run_everything() {
  for (std::size_t i = 0; i < runtime().devices.size(); ++i)
    static_cast<void>(run_device(static_cast<int>(i)));
  return runtime().failure;
}

cudaError_t queue_kernel(const cudaLaunchConfig_t& config, KernelCall call) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaLaunchKernelEx")) return finish(status);
  const dim3& grid = config.gridDim;
  const dim3& block = config.blockDim;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0 ||
      grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535 || block.z > 64 ||
      std::size_t{block.x} * block.y * block.z > 1024)
    return finish(cudaErrorInvalidConfiguration);
  const auto asked = runtime().kernel_shared_bytes.find(call.kernel);
  if (config.dynamicSmemBytes > (asked == runtime().kernel_shared_bytes.end() ? 48 * 1024 : asked->second))
    return finish(cudaErrorInvalidValue);
  Queue* const queue = queue_of(config.stream);
  if (queue->device != current_device()) return finish(cudaErrorInvalidResourceHandle);
  push(*queue, {.work = [config, call = std::move(call), device = queue->device] {
    run_kernel(config, call, device);
  }});
  return cudaSuccess;
}

}  // namespace cuda_emulation

using namespace cuda_emulation;

extern "C" {

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaFuncSetAttribute")) return finish(status);
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > 227 * 1024)
    return finish(cudaErrorInvalidValue);
  runtime().kernel_shared_bytes[kernel] = static_cast<std::size_t>(value);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaStreamCreateWithFlags")) return finish(status);
  auto queue = std::make_unique<Queue>();
  queue->device = current_device();
  queue->blocking = (flags & cudaStreamNonBlocking) == 0;
  *stream = reinterpret_cast<cudaStream_t>(queue.get());
  Device& device = runtime().devices[static_cast<std::size_t>(queue->device)];
  device.queues.emplace(queue.get(), std::move(queue));
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, 0); }

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const RuntimeLock lock;
  count_call("cudaStreamDestroy");
  queue_of(stream)->destroyed = true;
  forget_finished_queues();
  return finish(runtime().failure);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaStreamSynchronize")) return finish(status);
  Queue& queue = *queue_of(stream);
  const cudaError_t status = run_queue(queue);
  count_synchronisation(queue.device);
  return finish(status);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t handle, unsigned) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaStreamWaitEvent")) return finish(status);
  const std::shared_ptr<Event> event = find_event(handle);
  if (event == nullptr) return finish(cudaErrorInvalidResourceHandle);
  push(*queue_of(stream), {.waits_for = event, .event_count = event->recorded});
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaEventCreateWithFlags")) return finish(status);
  auto event = std::make_shared<Event>();
  *handle = reinterpret_cast<cudaEvent_t>(event.get());
  runtime().events.emplace(*handle, std::move(event));
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const RuntimeLock lock;
  count_call("cudaEventDestroy");
  return finish(runtime().events.erase(event) == 0 ? cudaErrorInvalidResourceHandle : cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaEventRecord")) return finish(status);
  const std::shared_ptr<Event> event = find_event(handle);
  if (event == nullptr) return finish(cudaErrorInvalidResourceHandle);
  push(*queue_of(stream), {.records = event, .event_count = ++event->recorded});
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaEventSynchronize")) return finish(status);
  const std::shared_ptr<Event> event = find_event(handle);
  if (event == nullptr) return finish(cudaErrorInvalidResourceHandle);
  const std::uint64_t wanted = event->recorded;
  const cudaError_t status = run_until([&] { return event->passed >= wanted; }, nullptr);
  count_synchronisation(current_device());
  return finish(status);
}

}  // extern "C"

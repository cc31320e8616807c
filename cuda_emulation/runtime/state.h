// State behind the CUDA calls: devices, queues of work, events, memory, errors.
//
// One lock guards all of it: host threads take turns, also while kernels run.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "cuda_emulation/call_counts.h"

namespace cuda_emulation {

struct Event {
  std::uint64_t recorded = 0;  // times recorded
  std::uint64_t passed = 0;    // number of records reached so far
};

struct Operation {
  std::uint64_t number = 0;           // over all queues, in call order
  std::function<void()> work;         // a kernel or a copy; skipped after a failure
  std::function<void()> bookkeeping;  // memory management; never skipped
  std::shared_ptr<Event> waits_for;
  std::shared_ptr<Event> records;
  std::uint64_t event_count = 0;
};

// A stream. Its work runs only when something waits for it.
struct Queue {
  int device = 0;
  bool blocking = true;    // synchronises with the legacy default stream
  bool destroyed = false;  // queued work still runs
  std::deque<Operation> operations;
};

struct Pool {
  int device = 0;
  std::uint64_t release_threshold = 0;
  std::size_t used_bytes = 0;  // by allocations that exist in stream order
  std::size_t live_bytes = 0;  // allocated and not freed, in call order: the pool reuses the rest
  std::size_t held_bytes = 0;  // what the driver has given to it
};

struct Device {
  std::size_t capacity = 0;
  std::size_t used = 0;
  Queue legacy;
  Pool default_pool;
  std::map<Queue*, std::unique_ptr<Queue>> queues;
};

struct Allocation {
  std::size_t bytes = 0;
  int device = 0;
  Pool* pool = nullptr;
  bool freed = false;  // in call order; memory is released in stream order
};

struct Runtime {
  Runtime();
  ~Runtime();

  std::recursive_mutex mutex;
  int driver_version = 0;                           // newest CUDA that the driver supports
  cudaError_t no_device_error = cudaErrorNoDevice;  // of calls on a machine without a usable device
  std::deque<Device> devices;
  std::uint64_t operations = 0;
  std::uint64_t random = 0;
  std::map<cudaEvent_t, std::shared_ptr<Event>> events;
  std::map<Pool*, std::unique_ptr<Pool>> pools;
  std::map<char*, Allocation> allocations;
  std::map<char*, std::size_t> pinned;
  std::set<void*> cublas_handles;
  std::map<const void*, std::size_t> kernel_shared_bytes;  // kernels that requested more than 48 KiB
  CallCounts counts;
  std::uint64_t allocations_tried = 0;
  std::uint64_t allocation_to_fail = 0;
  std::map<std::string, cudaError_t> calls_to_fail;
  cudaError_t failure = cudaSuccess;
  std::string report;
};
Runtime& runtime();

class RuntimeLock {
 public:
  RuntimeLock() : guard_(runtime().mutex) {}

 private:
  std::lock_guard<std::recursive_mutex> guard_;
};

int current_device();
Queue* queue_of(cudaStream_t stream);

// Counts a call that has no status to ask for.
void count_call(const char* call);
// Counts a call during which the host waits; pools of the device give memory back.
void count_synchronisation(int device);

// Counts the call. Status to return at its beginning: an injected failure or, if it uses the device, the
// failure not yet taken by take_report(). cudaSuccess: proceed.
cudaError_t call_error(const char* call);
cudaError_t device_call_error(const char* call);
// Stores an error for cudaGetLastError.
cudaError_t finish(cudaError_t status);

void push(Queue& queue, Operation operation);
// Runs queued work until `done`, work of `preferred` first, otherwise in an order that depends on the seed.
cudaError_t run_until(const std::function<bool()>& done, Queue* preferred);
cudaError_t run_queue(Queue& queue);
cudaError_t run_device(int device);
cudaError_t run_everything();

// Counts an allocation; false if fault injection makes it fail.
bool may_allocate();

}  // namespace cuda_emulation

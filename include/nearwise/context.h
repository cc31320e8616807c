// Context: device, threads, memory budget, seed, progress and cancellation of operations.
//
// A cheap handle: copies refer to the same state, and threads may share one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "nearwise/export.h"
#include "nearwise/progress.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

struct ContextOptions {
  int threads = 0;                  // 0: all CPUs available to this process
  std::uint64_t memory_limit = 0;   // bytes of working memory, results and indexes together; 0: no limit
  std::uint64_t memory_in_use = 0;  // bytes of the limit already in use by the caller, such as for an index
  std::uint64_t seed = 0;           // of all random numbers
  // CPU: the highest instruction set to use, one of instruction_sets(); empty: the best available. CUDA:
  // precision of screening products, "f32" (default), or "tf32" and "bf16" on tensor cores. Does not change
  // results.
  std::string isa = {};
  ProgressCallback progress = {};
  std::function<double()> clock = {};  // seconds, monotonic; empty: steady_clock. For tests.
};

class Context {
 public:
  static Context cpu(ContextOptions options = {});
  // Throws Error(unsupported) if this build or machine has no such device.
  static Context cuda(int ordinal, ContextOptions options = {});
  // "cpu", "cuda" or "cuda:N"
  static Context on(const std::string& device, ContextOptions options = {});

  Place place() const;
  int threads() const;
  std::uint64_t seed() const;
  std::uint64_t memory_limit() const;  // bytes; 0: no limit
  std::uint64_t memory_used() const;   // bytes
  std::uint64_t memory_peak() const;   // bytes
  std::string isa() const;

  // The same device, threads and budget, with its own progress and cancellation.
  Context with_progress(ProgressCallback progress) const;
  // The same without progress reports, for the steps of an operation that makes its own. Cancelling either
  // handle cancels both.
  Context without_progress() const;

  // Operations of this handle stop with Error(cancelled), normally well within 100 ms; on a CUDA device once
  // queued work has ended. May be called from any thread, not from a signal handler. A cancelled handle stays
  // cancelled: get a new one from with_progress().
  void cancel() const;
  bool cancelled() const;

  class State;  // src/backend/context_state.h
  explicit Context(std::shared_ptr<State> state) : state_(std::move(state)) {}
  State& state() const { return *state_; }

 private:
  std::shared_ptr<State> state_;
};

// While it exists, functions that take no context (save, load_knn_graph, verify, ...) and are called by this
// thread stop with Error(cancelled) once `context` is cancelled. Scopes nest: the innermost one applies.
class CancellationScope {
 public:
  explicit CancellationScope(Context context);
  ~CancellationScope();
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

 private:
  const Context context_;
  const void* const before_;
};

}  // namespace nearwise

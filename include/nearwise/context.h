// Context: the device work runs on, its threads, memory limit and seed.
//
// A Context is a cheap shared handle (device, threads, memory budget, seed, progress, cancellation).
// Threads may share one; copies refer to the same state.
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
  int threads = 0;                 // 0: all CPUs available to this process
  std::uint64_t memory_limit = 0;  // bytes of working memory and results together; 0: no limit
  std::uint64_t seed = 0;
  // Caps the instruction set (a name of instruction_sets()); empty: the best available. On a CUDA device the
  // precision of screening products: "f32" (default), or "tf32" and "bf16" on tensor cores. Results do not
  // depend on it.
  std::string isa = {};
  ProgressCallback progress = {};
  std::function<double()> clock = {};  // seconds, monotonic; empty: the machine's. Tests set it.
};

class Context {
 public:
  static Context cpu(ContextOptions options = {});
  // Throws Error(unsupported) where this build or machine has no such device.
  static Context cuda(int ordinal, ContextOptions options = {});
  // "cpu", "cuda" or "cuda:N"
  static Context on(const std::string& device, ContextOptions options = {});

  Place place() const;
  int threads() const;
  std::uint64_t seed() const;
  std::uint64_t memory_limit() const;  // 0: none
  std::uint64_t memory_used() const;
  std::uint64_t memory_peak() const;
  std::string isa() const;

  // The same device, threads and budget, with progress and cancellation of its own.
  Context with_progress(ProgressCallback progress) const;
  // The same without progress reports; cancelling either cancels both. For the steps of an operation that
  // reports its own progress.
  Context without_progress() const;

  // Operations running under this handle stop soon (well under 100 ms; on a CUDA device when what is queued
  // has ended) with Error(cancelled). Async-safe for threads, not for signal handlers. A cancelled handle
  // stays cancelled: take a new one from with_progress().
  void cancel() const;
  bool cancelled() const;

  class State;  // src/backend/context_state.h
  explicit Context(std::shared_ptr<State> state) : state_(std::move(state)) {}
  State& state() const { return *state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace nearwise

// For tests: counts what a program asks of the CUDA runtime and cuBLAS.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace cuda_emulation {

// Since the start or the last reset, over all devices.
struct CallCounts {
  // By name, failed calls included. cudaMemset counts as cudaMemsetAsync, cudaMallocHost as cudaHostAlloc,
  // cudaStreamCreate and cudaEventCreate as their forms with flags, products of cuBLAS as cublasGemm.
  // cudaGetDevice, cudaGetLastError and the texts of errors are not counted.
  std::map<std::string, std::uint64_t> calls;
  // Bytes of copies between host and device.
  std::uint64_t pageable_to_device = 0;
  std::uint64_t pinned_to_device = 0;
  std::uint64_t device_to_pageable = 0;
  std::uint64_t device_to_pinned = 0;
  // Calls during which the host waits for the device: for a stream, an event or all of the device, frees
  // outside stream order, and copies to pageable memory, which may return when they are complete.
  std::uint64_t synchronisations = 0;
  // Allocations for which a memory pool had to ask the driver for memory. A pool reuses what was freed, and
  // keeps what it has up to the release threshold when the host waits.
  std::uint64_t pool_growths = 0;
  std::uint64_t pool_growth_bytes = 0;

  std::uint64_t of(const std::string& call) const {
    const auto found = calls.find(call);
    return found == calls.end() ? 0 : found->second;
  }
  std::uint64_t launches() const { return of("cudaLaunchKernelEx") + of("cublasGemm"); }
  std::uint64_t device_allocations() const {
    return of("cudaMalloc") + of("cudaMallocAsync") + of("cudaMallocFromPoolAsync");
  }
  std::uint64_t pinned_allocations() const { return of("cudaHostAlloc"); }
  std::uint64_t stream_creations() const { return of("cudaStreamCreateWithFlags"); }
  std::uint64_t handle_creations() const { return of("cublasCreate"); }
};
CallCounts call_counts();
void reset_call_counts();

}  // namespace cuda_emulation

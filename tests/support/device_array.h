// Elements in device memory, copied there and back: for tests that call CUDA or launch kernels themselves.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "backend/cuda/device/error.h"
#include "backend/cuda/device/gpu.h"

namespace nearwise::support {

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size) : size_(size) {
    if (size > 0) gpu::check(cudaMalloc(reinterpret_cast<void**>(&data_), size * sizeof(T)), "cudaMalloc");
  }
  explicit DeviceArray(std::span<const T> elements) : DeviceArray(elements.size()) {
    if (size_ == 0) return;
    gpu::check(cudaMemcpy(data_, elements.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
    // The copy may still be under way, and streams of a context do not wait for the default one.
    gpu::check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }
  explicit DeviceArray(const std::vector<T>& elements) : DeviceArray(std::span<const T>(elements)) {}
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { gpu::ignore(cudaFree(data_)); }

  T* data() const { return data_; }
  std::vector<T> to_host() const {
    std::vector<T> elements(size_);
    if (size_ > 0)
      gpu::check(cudaMemcpy(elements.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return elements;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace nearwise::support

// Makes a device the calling thread's current one while it lives: launches, allocations and messages mean that one.
#pragma once

#include "backend/cuda/error.h"

namespace nearwise::gpu {

class DeviceScope {
 public:
  explicit DeviceScope(int ordinal) {
    check(cudaGetDevice(&before_), "choosing a device");
    check(cudaSetDevice(ordinal), "choosing a device");
  }
  ~DeviceScope() { ignore(cudaSetDevice(before_)); }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = 0;
};

}  // namespace nearwise::gpu

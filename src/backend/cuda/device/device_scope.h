// Makes a device the calling thread's current one while it lives: launches, allocations and messages mean that one.
#pragma once

#include "backend/cuda/device/error.h"

namespace nearwise::gpu {

class DeviceScope {
 public:
  explicit DeviceScope(int ordinal) {
    check(cudaGetDevice(&before_), "choosing a device", ordinal);
    changed_ = before_ != ordinal;
    if (changed_) check(cudaSetDevice(ordinal), "choosing a device", ordinal);
  }
  ~DeviceScope() {
    if (changed_) ignore(cudaSetDevice(before_));
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace nearwise::gpu

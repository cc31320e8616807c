// Sets the calling thread's current device for the lifetime of the object.
#pragma once

#include "backend/cuda/device/error.h"

namespace nearwise::gpu {

class DeviceScope {
 public:
  explicit DeviceScope(int ordinal) {
    check(cudaGetDevice(&previous_), "choosing a device", ordinal);
    changed_ = previous_ != ordinal;
    if (changed_) check(cudaSetDevice(ordinal), "choosing a device", ordinal);
  }
  ~DeviceScope() {
    if (changed_) ignore(cudaSetDevice(previous_));
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int previous_ = 0;
  bool changed_ = false;
};

}  // namespace nearwise::gpu

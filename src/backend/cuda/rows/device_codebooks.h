// Codewords of a product or additive quantizer on the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/kernels/codes/code_rows.h"
#include "backend/ops.h"

namespace nearwise::gpu {

class CodebooksOnDevice {
 public:
  CodebooksOnDevice() = default;
  // begins: [parts + 1] first elements of the parts, ascending.
  CodebooksOnDevice(const CudaStream& stream, std::span<const float> codewords,
                    std::span<const std::size_t> begins, unsigned bits, const char* operation)
      : codewords_(stream, codewords.size(), operation), begins_(stream, begins.size(), operation) {
    copy_to_device(stream, codewords, codewords_.data(), operation);
    const std::vector<std::uint32_t> narrow(begins.begin(), begins.end());
    copy_to_device(stream, std::span<const std::uint32_t>(narrow), begins_.data(), operation);
    view_ = {.codewords = codewords_.data(),
             .begins = begins_.data(),
             .parts = static_cast<std::uint32_t>(begins.size() - 1),
             .dim = static_cast<std::uint32_t>(begins.back()),
             .bits = bits};
  }
  // Additive codebooks, [parts, 256, dim].
  CodebooksOnDevice(const CudaStream& stream, std::span<const float> codewords, std::size_t dim,
                    const char* operation)
      : codewords_(stream, codewords.size(), operation) {
    constexpr unsigned bits = 8;
    copy_to_device(stream, codewords, codewords_.data(), operation);
    view_ = {.codewords = codewords_.data(),
             .parts = static_cast<std::uint32_t>(codewords.size() / dim >> bits),
             .dim = static_cast<std::uint32_t>(dim),
             .bits = bits};
  }
  CodebooksOnDevice(const CudaStream& stream, const Codebooks& codebooks, const char* operation)
      : CodebooksOnDevice(stream, codebooks.codewords, begins_of(codebooks), codebooks.bits, operation) {}

  static std::uint64_t bytes(std::size_t codewords, std::size_t parts) {
    return device_bytes(codewords, sizeof(float)) + device_bytes(parts + 1, sizeof(std::uint32_t));
  }
  static std::uint64_t bytes(const Codebooks& codebooks) {
    return bytes(codebooks.dim * codebooks.count(), codebooks.parts);
  }

  const DeviceCodebooks& view() const { return view_; }

 private:
  static std::vector<std::size_t> begins_of(const Codebooks& codebooks) {
    std::vector<std::size_t> begins;
    for (std::size_t part = 0; part <= codebooks.parts; ++part) begins.push_back(codebooks.begin(part));
    return begins;
  }

  DeviceBuffer<float> codewords_;
  DeviceBuffer<std::uint32_t> begins_;
  DeviceCodebooks view_;
};

}  // namespace nearwise::gpu

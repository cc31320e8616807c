#include "backend/cuda/device/encoding.h"

#include "core/check.h"

namespace nearwise::gpu {

Encoding parse_encoding(std::string_view name) {
  if (name.empty() || name == "f32") return Encoding::f32;
  if (name == "tf32") return Encoding::tf32;
  if (name == "bf16") return Encoding::bf16;
  fail(ErrorCode::invalid_argument, "context: isa of a CUDA device must be f32, tf32 or bf16, got '{}'",
       name);
}

}  // namespace nearwise::gpu

// Replaces the CUDA backend in builds without CUDA.
#include "backend/backend.h"

namespace nearwise {

const Backend* cuda_backend() { return nullptr; }

}  // namespace nearwise

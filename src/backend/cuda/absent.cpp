// Stands in for the CUDA backend in a build without it.
#include "backend/backend.h"

namespace nearwise {

const Backend* cuda_backend() { return nullptr; }

}  // namespace nearwise

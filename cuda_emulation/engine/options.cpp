#include <cstdlib>

#include "cuda_emulation/control.h"

namespace cuda_emulation {
namespace {

Options from_environment() {
  Options chosen;
  if (const char* text = std::getenv("CUDA_EMULATION_SEED")) chosen.seed = std::strtoull(text, nullptr, 0);
  if (const char* text = std::getenv("CUDA_EMULATION_RESIDENT_BLOCKS"))
    chosen.resident_blocks = std::atoi(text);
  chosen.late_copies = std::getenv("CUDA_EMULATION_LATE_COPIES") != nullptr;
  chosen.profile = std::getenv("CUDA_EMULATION_PROFILE") != nullptr;
  return chosen;
}

}  // namespace

Options& options() {
  static Options chosen = from_environment();
  return chosen;
}

Statistics& statistics() {
  static Statistics counted;
  return counted;
}

}  // namespace cuda_emulation

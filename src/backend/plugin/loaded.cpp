// The CUDA backend of builds that do not have it linked in: searched for once.
#include <cstdlib>
#include <mutex>
#include <string>

#include "backend/plugin/plugin.h"
#include "core/fork.h"

namespace nearwise {
namespace {

constinit std::mutex package_mutex;

// Never destroyed: other threads may work while the process ends.
std::string& package_path() {
  static std::string* const path = new std::string;
  return *path;
}

CudaLibrary load() {
  const char* const variable = std::getenv(cuda_variable);
  const std::lock_guard lock(package_mutex);
  return load_cuda_library(variable == nullptr ? "" : variable, package_path());
}

}  // namespace

const CudaLibrary& cuda_library() {
  // The child of a fork during the search would wait for its end for ever.
  const NoFork whole;
  static const CudaLibrary& library = *new CudaLibrary(load());
  return library;
}

void set_cuda_library(const std::string& path) {
  const NoFork whole;
  const std::lock_guard lock(package_mutex);
  package_path() = path;
}

}  // namespace nearwise

// Loads the CUDA backend from a file.
#include <dlfcn.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "backend/plugin/plugin.h"

namespace nearwise {
namespace {

constexpr const char* file_name = "libnearwise_cuda.so";

// Without a file that is named.
std::string not_installed() {
  return fmt::format(
      "the CUDA backend is not installed: pip install nearwise-cuda13, or name its file in {} "
      "(looked for the Python package nearwise_cuda13, and for {} where the system looks for libraries)",
      cuda_variable, file_name);
}

std::string cannot_load(const std::string& file, std::string_view source, std::string_view error) {
  const bool is_nvidia = error.starts_with("libcudart") || error.starts_with("libcublas");
  return fmt::format("the CUDA backend {}{} cannot be loaded: {}{}", file, source, error,
                     is_nvidia ? "; pip install nvidia-cuda-runtime nvidia-cublas" : "");
}

std::string file_of(PluginFunction function) {
  Dl_info info{};
  return dladdr(reinterpret_cast<const void*>(function), &info) != 0 ? info.dli_fname : "";
}

}  // namespace

CudaLibrary load_cuda_library(const std::string& variable, const std::string& package) {
  const std::string& named = variable.empty() ? package : variable;
  const std::string file = named.empty() ? file_name : named;
  const std::string source = variable.empty() ? "" : fmt::format(" (named by {})", cuda_variable);
  // Never unloaded: objects of the library may hold its functions until the process ends.
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* const told = dlerror();
    const std::string error = told == nullptr ? "no reason is given" : told;
    // The linker begins with the name of the file that it has not found.
    if (named.empty() && error.starts_with(file_name)) return {.problem = not_installed()};
    return {.problem = cannot_load(file, source, error)};
  }
  const auto function = reinterpret_cast<PluginFunction>(dlsym(handle, plugin_function_name));
  if (function == nullptr)
    return {.problem = cannot_load(file, source, fmt::format("it has no function {}", plugin_function_name))};
  const std::string path = file_of(function);
  const PluginEntry& entry = *function();
  if (std::string_view(entry.build_id) != build_id())
    return {.problem = fmt::format("the CUDA backend {}{} is of another build: it is {}, nearwise is {}; "
                                   "install nearwise and nearwise-cuda13 of the same build",
                                   path, source, entry.build_id, build_id())};
  return {.functions = &entry.start(base_functions()), .path = path};
}

}  // namespace nearwise

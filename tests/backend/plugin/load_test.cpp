// Plugins are loaded and refused, and exceptions and budgets are shared with them.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "backend/plugin/plugin.h"
#include "core/memory.h"
#include "nearwise/context.h"
#include "nearwise/machine.h"
#include "support/error_of.h"

namespace nearwise {
namespace {

// CMake puts the plugins next to this program.
std::string plugin(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return (folder / ("libplugin_" + name + ".so")).string();
}

const CudaBackend& backend_of_this_build() {
  static const CudaLibrary library = load_cuda_library(plugin("of_this_build"), "");
  EXPECT_EQ(library.problem, "");
  EXPECT_EQ(library.path, plugin("of_this_build"));
  if (library.functions == nullptr) std::abort();
  return *library.functions;
}

Context context(ContextOptions options = {}) {
  const Backend& backend = *backend_of_this_build().backend;
  return Context(std::make_shared<Context::State>(backend, Place{DeviceKind::cuda, 0}, std::move(options)));
}

TEST(CudaPlugin, ErrorsOfThePluginAreCaught) {
  EXPECT_EQ(backend_of_this_build().backend->device_count(), 1);
  const Error error = support::error_of([] { backend_of_this_build().device(7); });
  EXPECT_EQ(error.code(), ErrorCode::device);
  EXPECT_STREQ(error.what(), "describing cuda:7: there is none");
}

TEST(CudaPlugin, BudgetsAreShared) {
  const Context limited = context({.threads = 2, .memory_limit = 3 << 16});
  const std::vector<std::byte> bytes(2 << 16, std::byte{42});
  {
    const auto copy = backend_of_this_build().copy_to_device(limited, bytes);
    EXPECT_EQ(copy->data()[bytes.size() - 1], std::byte{42});
    EXPECT_EQ(limited.memory_used(), buffer_bytes(bytes.size(), 1));
    const Error error = support::error_of([&] { backend_of_this_build().copy_to_device(limited, bytes); });
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
  }
  EXPECT_EQ(limited.memory_used(), 0U);
}

TEST(CudaPlugin, CancellationReachesThePlugin) {
  const Context cancelled = context();
  cancelled.cancel();
  const Error error = support::error_of([&] { backend_of_this_build().copy_to_device(cancelled, {}); });
  EXPECT_EQ(error.code(), ErrorCode::cancelled);
}

TEST(CudaPlugin, OfAnotherBuildIsRefusedWithBothIds) {
  const CudaLibrary library = load_cuda_library("", plugin("of_another_build"));
  EXPECT_EQ(library.functions, nullptr);
  EXPECT_EQ(library.problem, "the CUDA backend " + plugin("of_another_build") +
                                 " is of another build: it is 0.1.9-0123456789abcdef, nearwise is " +
                                 build_id() + "; install nearwise and nearwise-cuda13 of the same build");
}

TEST(CudaPlugin, WhatCannotBeLoadedIsSaid) {
  const auto problem = [](const std::string& variable, const std::string& package) {
    const CudaLibrary library = load_cuda_library(variable, package);
    EXPECT_EQ(library.functions, nullptr);
    return library.problem;
  };
  EXPECT_TRUE(problem("", "").starts_with("the CUDA backend is not installed: pip install nearwise-cuda13"));
  EXPECT_TRUE(problem("/nowhere/a.so", plugin("of_this_build"))
                  .starts_with("the CUDA backend /nowhere/a.so (named by NEARWISE_CUDA_BACKEND) cannot be "
                               "loaded: /nowhere/a.so: "));
  EXPECT_TRUE(problem(plugin("without_function"), "").ends_with("it has no function nearwise_cuda_backend"));
  const std::string runtime = problem(plugin("without_runtime"), "");
  EXPECT_TRUE(runtime.ends_with("; pip install nvidia-cuda-runtime nvidia-cublas")) << runtime;
}

TEST(CudaPlugin, TheBuildIdIsTheVersionAndAHash) {
  const std::string id = build_id();
  EXPECT_TRUE(id.starts_with(version() + "-")) << id;
  EXPECT_EQ(id.size(), version().size() + 17);
}

}  // namespace
}  // namespace nearwise

// Replaces the checksum functions of a program that loads it first (LD_PRELOAD), to measure what they cost.
//
//   CHECKSUMS=none     every checksum is 1 and takes no time: files are written and read with that
//   CHECKSUMS=timed    checksums as they are. Of a program linked with xxHash, not of a Python module
//
// At exit the calls and bytes of the real functions, and the seconds during which at least one thread was in
// one, are written to the file CHECKSUM_REPORT as JSON.
#include <dlfcn.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace {

constexpr std::uint64_t no_checksum = 1;  // not 0, which plans take for "no output"

bool is_none() {
  static const bool none = [] {
    const char* const mode = std::getenv("CHECKSUMS");
    return mode != nullptr && std::strcmp(mode, "none") == 0;
  }();
  return none;
}

// The function that this library hides.
template <typename Function>
Function* hidden(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "checksum_preload: %s is missing\n", name);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

using Clock = std::chrono::steady_clock;

class Totals {
 public:
  ~Totals() {
    const char* const path = std::getenv("CHECKSUM_REPORT");
    std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "w");
    if (file == nullptr) return;
    std::fprintf(file, "{\"calls\": %llu, \"bytes\": %llu, \"seconds\": %.6f}\n", calls_, bytes_,
                 std::chrono::duration<double>(elapsed_).count());
    std::fclose(file);
  }

  void enter() {
    const std::lock_guard lock(mutex_);
    if (inside_++ == 0) start_ = Clock::now();
  }
  void leave(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    calls_ += 1;
    bytes_ += bytes;
    if (--inside_ == 0) elapsed_ += Clock::now() - start_;
  }

 private:
  std::mutex mutex_;
  int inside_ = 0;  // threads
  Clock::time_point start_ = {};
  Clock::duration elapsed_ = {};
  unsigned long long calls_ = 0;
  unsigned long long bytes_ = 0;
};
Totals totals;

auto timed(std::size_t bytes, const auto& work) {
  totals.enter();
  const auto result = work();
  totals.leave(bytes);
  return result;
}

}  // namespace

// The functions of xxHash that nearwise calls, under its names. Making and freeing a state costs nothing.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

std::uint64_t XXH3_64bits(const void* data, std::size_t bytes) {
  if (is_none()) return no_checksum;
  static auto* const real = hidden<std::uint64_t(const void*, std::size_t)>("XXH3_64bits");
  return timed(bytes, [&] { return real(data, bytes); });
}

std::uint64_t XXH3_64bits_withSeed(const void* data, std::size_t bytes, std::uint64_t seed) {
  if (is_none()) return no_checksum;
  static auto* const real =
      hidden<std::uint64_t(const void*, std::size_t, std::uint64_t)>("XXH3_64bits_withSeed");
  return timed(bytes, [&] { return real(data, bytes, seed); });
}

int XXH3_64bits_update(void* state, const void* data, std::size_t bytes) {
  if (is_none()) return 0;
  static auto* const real = hidden<int(void*, const void*, std::size_t)>("XXH3_64bits_update");
  return timed(bytes, [&] { return real(state, data, bytes); });
}

std::uint64_t XXH3_64bits_digest(const void* state) {
  if (is_none()) return no_checksum;
  static auto* const real = hidden<std::uint64_t(const void*)>("XXH3_64bits_digest");
  return timed(0, [&] { return real(state); });
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)

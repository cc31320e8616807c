// The BLAS this build is linked with: named, measured, and judged against our own kernel.
//
// Debian's OpenBLAS does not recognise some CPUs and silently runs a generic kernel at a fifth of the speed. Exact
// search does not care, but users of the same BLAS elsewhere will, and they should be told.
#include <dlfcn.h>

#include <vector>

#include "backend/cpu/rows/choose_scan.h"
#include "backend/cpu/rows/scan_rates.h"
#include "core/check.h"
#include "core/random.h"
#include "nearwise/machine.h"

// The Fortran interface is the one that every BLAS has.
extern "C" void sgemm_(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,
                       const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                       const float* beta, float* c, const int* ldc);

namespace nearwise {
namespace {

constexpr int size = 512;  // of the square product that is measured
constexpr int repetitions = 5;

template <typename Function>
Function symbol(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

std::string describe() {
  if (const auto config = symbol<char* (*)()>("openblas_get_config"); config != nullptr) {
    std::string text = config();
    if (const auto core = symbol<char* (*)()>("openblas_get_corename"); core != nullptr)
      text += fmt::format(", core type {}", core());
    return text;
  }
  if (const auto version = symbol<void (*)(char*, int)>("MKL_Get_Version_String"); version != nullptr) {
    char text[256] = {};
    version(text, sizeof(text) - 1);
    return text;
  }
  return "unknown BLAS";
}

double measure_sgemm(const std::vector<float>& left, const std::vector<float>& right) {
  if (const auto set_threads = symbol<void (*)(int)>("openblas_set_num_threads"); set_threads != nullptr)
    set_threads(1);
  std::vector<float> out(static_cast<std::size_t>(size) * size);
  const float one = 1;
  const float zero = 0;
  const double seconds = cpu::fastest_seconds(repetitions, [&] {
    sgemm_("T", "N", &size, &size, &size, &one, left.data(), &size, right.data(), &size, &zero, out.data(),
           &size);
  });
  return 2.0 * size * size * size / seconds * 1e-9;
}

}  // namespace

BlasInfo measure_blas() {
  const Random random(0);
  std::vector<float> left(static_cast<std::size_t>(size) * size);
  std::vector<float> right(left.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    left[i] = static_cast<float>(random.uniform(2 * i) - 0.5);
    right[i] = static_cast<float>(random.uniform(2 * i + 1) - 0.5);
  }
  BlasInfo info;
  info.library = describe();
  info.gflops = measure_sgemm(left, right);
  info.own_gflops = cpu::scan_gflops(cpu::careful_scan(cpu::choose_instruction_set("")));
  if (info.gflops < info.own_gflops / 2)
    info.warning = fmt::format(
        "this BLAS runs at {:.0f} GFLOP/s where {:.0f} are possible: it does not recognise the CPU. Exact "
        "search is not "
        "affected. For OpenBLAS set OPENBLAS_CORETYPE (SKYLAKEX on AVX-512, HASWELL on AVX2), or install "
        "another BLAS",
        info.gflops, info.own_gflops);
  return info;
}

}  // namespace nearwise

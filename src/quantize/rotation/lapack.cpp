#include "quantize/rotation/lapack.h"

#include <dlfcn.h>

#include <algorithm>
#include <mutex>

#include "core/check.h"

// The Fortran interface is the one that every LAPACK has. Matrices are stored by columns there: what is a row here is a column
// to it. Hidden lengths of text arguments come last.
extern "C" {
void dsyevd_(const char* jobz, const char* uplo, const int* n, double* a, const int* lda, double* w,
             double* work, const int* lwork, int* iwork, const int* liwork, int* info, std::size_t,
             std::size_t);
void dgesdd_(const char* jobz, const int* m, const int* n, double* a, const int* lda, double* s, double* u,
             const int* ldu, double* vt, const int* ldvt, double* work, const int* lwork, int* iwork,
             int* info, std::size_t);
void dpotrf_(const char* uplo, const int* n, double* a, const int* lda, int* info, std::size_t);
void dpotrs_(const char* uplo, const int* n, const int* nrhs, const double* a, const int* lda, double* b,
             const int* ldb, int* info, std::size_t);
void dgemm_(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,
            const double* alpha, const double* a, const int* lda, const double* b, const int* ldb,
            const double* beta, double* c, const int* ldc, std::size_t, std::size_t);
}

namespace nearwise::quantize {
namespace {

// OpenBLAS has threads of its own, and what it returns depends on their number. That is a setting of the whole process:
// one decomposition at a time changes it, and puts it back.
class SingleThreaded {
 public:
  SingleThreaded() : lock_(mutex()) {
    const auto get = symbol<int (*)()>("openblas_get_num_threads");
    set_ = symbol<void (*)(int)>("openblas_set_num_threads");
    if (get == nullptr || set_ == nullptr) return;
    before_ = get();
    set_(1);
  }
  ~SingleThreaded() {
    if (before_ > 1) set_(before_);
  }
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  template <typename Function>
  static Function symbol(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  }
  static std::mutex& mutex() {
    static std::mutex shared;
    return shared;
  }

  std::lock_guard<std::mutex> lock_;
  void (*set_)(int) = nullptr;
  int before_ = 0;
};

// Sizes by LAPACK's documentation, not asked for: what is asked depends on the CPU, and would have to be asked twice.
std::size_t eigenvectors_work(std::size_t n) { return 1 + 6 * n + 2 * n * n; }
std::size_t eigenvectors_integers(std::size_t n) { return 3 + 5 * n; }
std::size_t orthogonal_work(std::size_t n) { return 7 * n * n + 8 * n; }

void check_info(const char* what, int info) {
  if (info != 0) fail(ErrorCode::internal, "{}: LAPACK failed with info {}", what, info);
}

}  // namespace

std::uint64_t eigenvectors_bytes(std::size_t n) {
  return buffer_bytes(eigenvectors_work(n), sizeof(double)) +
         buffer_bytes(eigenvectors_integers(n), sizeof(int));
}

std::uint64_t nearest_orthogonal_bytes(std::size_t n) {
  return buffer_bytes(n, sizeof(double)) + 2 * buffer_bytes(n * n, sizeof(double)) +
         buffer_bytes(orthogonal_work(n), sizeof(double)) + buffer_bytes(8 * n, sizeof(int));
}

void eigenvectors(MemoryBudget& budget, std::span<double> matrix, std::span<double> values) {
  const int n = static_cast<int>(values.size());
  Buffer<double> work(budget, eigenvectors_work(values.size()));
  Buffer<int> integers(budget, eigenvectors_integers(values.size()));
  const int work_size = static_cast<int>(work.size());
  const int integers_size = static_cast<int>(integers.size());
  int info = 0;
  const SingleThreaded scope;
  dsyevd_("V", "U", &n, matrix.data(), &n, values.data(), work.data(), &work_size, integers.data(),
          &integers_size, &info, 1, 1);
  check_info("dsyevd", info);
}

void nearest_orthogonal(MemoryBudget& budget, std::span<double> matrix, std::size_t n) {
  const int size = static_cast<int>(n);
  Buffer<double> values(budget, n);
  Buffer<double> left(budget, n * n);
  Buffer<double> right(budget, n * n);
  Buffer<double> work(budget, orthogonal_work(n));
  Buffer<int> integers(budget, 8 * n);
  const int work_size = static_cast<int>(work.size());
  int info = 0;
  const SingleThreaded scope;
  dgesdd_("A", &size, &size, matrix.data(), &size, values.data(), left.data(), &size, right.data(), &size,
          work.data(), &work_size, integers.data(), &info, 1);
  check_info("dgesdd", info);
  // Of the transpose, as LAPACK sees it, V U' is the answer: transposed once more when it is read by rows.
  const double one = 1;
  const double zero = 0;
  dgemm_("N", "N", &size, &size, &size, &one, left.data(), &size, right.data(), &size, &zero, matrix.data(),
         &size, 1, 1);
}

void solve_positive(std::span<double> matrix, std::size_t n, std::span<double> right) {
  const int size = static_cast<int>(n);
  const int sides = static_cast<int>(right.size() / n);
  int info = 0;
  const SingleThreaded scope;
  // What is below the diagonal by rows is above it by columns.
  dpotrf_("U", &size, matrix.data(), &size, &info, 1);
  check_info("dpotrf", info);
  dpotrs_("U", &size, &sides, matrix.data(), &size, right.data(), &size, &info, 1);
  check_info("dpotrs", info);
}

}  // namespace nearwise::quantize

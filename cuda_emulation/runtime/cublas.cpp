// The supported part of cuBLAS: matrix products with the rounding of the compute type.
#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "cuda_emulation/engine/memory.h"
#include "cuda_emulation/engine/threads.h"
#include "cuda_emulation/runtime/device_memory.h"
#include "cuda_emulation/runtime/rounding.h"
#include "cuda_emulation/runtime/state.h"

namespace cuda_emulation {
namespace {

struct Handle {
  int device = 0;
  cudaStream_t stream = nullptr;
  cublasMath_t mode = CUBLAS_DEFAULT_MATH;
  char* workspace = nullptr;  // of the user; null: the library's own
  std::size_t workspace_bytes = 0;
};

Handle& handle_of(cublasHandle_t handle) { return *reinterpret_cast<Handle*>(handle); }

enum class Products : std::uint8_t { plain, tf32, bfloat16, exact_inputs };

// A column-major matrix.
struct Operand {
  const void* data;
  cudaDataType type;
  int leading;
  bool transposed;
};

struct Product {
  int rows, columns, depth;
  float alpha, beta;
  Operand a, b;
  float* c;
  int leading_c;
  Products products;
};

std::size_t element_bytes(cudaDataType type) { return type == CUDA_R_32F ? 4 : 2; }

float element(const Operand& operand, std::size_t index) {
  switch (operand.type) {
    case CUDA_R_32F: return static_cast<const float*>(operand.data)[index];
    case CUDA_R_16BF: return from_bfloat16(static_cast<const std::uint16_t*>(operand.data)[index]);
    default: return __half2float(static_cast<const __half*>(operand.data)[index]);
  }
}

float round_input(float value, Products products) {
  switch (products) {
    case Products::tf32: return as_tf32(value);
    case Products::bfloat16: return as_bfloat16(value);
    default: return value;
  }
}

// The stored matrix is [stored_rows, stored_columns], column-major.
void require_matrix(const Operand& operand, int stored_rows, int stored_columns) {
  const std::size_t bytes = element_bytes(operand.type);
  for (int column = 0; column < stored_columns; ++column)
    require_region(static_cast<const char*>(operand.data) +
                       static_cast<std::size_t>(column) * static_cast<std::size_t>(operand.leading) * bytes,
                   static_cast<std::size_t>(stored_rows) * bytes, Use::read, "cuBLAS");
}

// Gathers `count` vectors of `depth` numbers, rounded to the input format of the product.
std::vector<float> pack(const Operand& operand, bool depth_is_contiguous, int count, int depth,
                        Products products) {
  std::vector<float> packed(static_cast<std::size_t>(count) * static_cast<std::size_t>(depth));
  const auto leading = static_cast<std::size_t>(operand.leading);
  std::size_t next = 0;
  for (int vector = 0; vector < count; ++vector)
    for (int i = 0; i < depth; ++i) {
      const auto major = static_cast<std::size_t>(depth_is_contiguous ? vector : i);
      const auto minor = static_cast<std::size_t>(depth_is_contiguous ? i : vector);
      packed[next++] = round_input(element(operand, major * leading + minor), products);
    }
  return packed;
}

// Eight partial sums: cuBLAS does not define an order, so callers must not rely on one.
float add_plainly(const float* a, const float* b, int depth) {
  float sums[8] = {};
  for (int i = 0; i < depth; ++i) sums[i % 8] += a[i] * b[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

float add_truncating(const float* a, const float* b, int depth) {
  float sum = 0;
  for (int i = 0; i < depth; ++i) sum = truncate(sum + static_cast<double>(a[i]) * b[i]);
  return sum;
}

void multiply(const Product& product) {
  const auto [rows, columns, depth] = std::tuple(product.rows, product.columns, product.depth);
  const Operand& a = product.a;
  const Operand& b = product.b;
  require_matrix(a, a.transposed ? depth : rows, a.transposed ? rows : depth);
  require_matrix(b, b.transposed ? columns : depth, b.transposed ? depth : columns);
  const std::vector<float> rows_of_a = pack(a, a.transposed, rows, depth, product.products);
  const std::vector<float> columns_of_b = pack(b, !b.transposed, columns, depth, product.products);
  for (int j = 0; j < columns; ++j) {
    float* const out = product.c + static_cast<std::size_t>(j) * static_cast<std::size_t>(product.leading_c);
    const std::size_t out_bytes = static_cast<std::size_t>(rows) * sizeof(float);
    require_region(out, out_bytes, product.beta == 0 ? Use::write : Use::read, "cuBLAS");
    for (int i = 0; i < rows; ++i) {
      const float* const x = rows_of_a.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(depth);
      const float* const y =
          columns_of_b.data() + static_cast<std::size_t>(j) * static_cast<std::size_t>(depth);
      const float sum =
          product.products == Products::plain ? add_plainly(x, y, depth) : add_truncating(x, y, depth);
      out[i] = product.alpha * sum + (product.beta == 0 ? 0.0f : product.beta * out[i]);
    }
    mark_initialised(out, out_bytes);
  }
}

cublasStatus_t queue_product(const Handle& handle, const Product& product) {
  if (product.rows < 0 || product.columns < 0 || product.depth < 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (product.leading_c < product.rows ||
      product.a.leading < (product.a.transposed ? product.depth : product.rows) ||
      product.b.leading < (product.b.transposed ? product.columns : product.depth))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (product.rows == 0 || product.columns == 0) return CUBLAS_STATUS_SUCCESS;
  if (device_call_error("cublasGemm") != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  push(*queue_of(handle.stream),
       {.work = [product, workspace = handle.workspace, bytes = handle.workspace_bytes] {
         // What cuBLAS leaves there is nobody's.
         if (bytes > 0) {
           require_region(workspace, bytes, Use::write, "cuBLAS workspace");
           std::memset(workspace, poison, bytes);
         }
         multiply(product);
       }});
  return CUBLAS_STATUS_SUCCESS;
}

bool is_supported(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_R_16BF || type == CUDA_R_16F;
}

}  // namespace
}  // namespace cuda_emulation

using namespace cuda_emulation;

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  const RuntimeLock lock;
  if (device_call_error("cublasCreate") != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!may_allocate()) return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = reinterpret_cast<cublasHandle_t>(new Handle{.device = current_device()});
  runtime().cublas_handles.insert(*handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  const RuntimeLock lock;
  count_call("cublasDestroy");
  // Otherwise a handle of another device would be destroyed here.
  if (!runtime().cublas_handles.contains(handle) || handle_of(handle).device != current_device())
    return CUBLAS_STATUS_NOT_INITIALIZED;
  runtime().cublas_handles.erase(handle);
  delete &handle_of(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  const RuntimeLock lock;
  count_call("cublasSetStream");
  handle_of(handle).stream = stream;
  handle_of(handle).workspace = nullptr;
  handle_of(handle).workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  const RuntimeLock lock;
  count_call("cublasSetWorkspace");
  constexpr std::size_t alignment = 256;
  if (!is_device_memory(workspace) || reinterpret_cast<std::uintptr_t>(workspace) % alignment != 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  handle_of(handle).workspace = static_cast<char*>(workspace);
  handle_of(handle).workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  const RuntimeLock lock;
  count_call("cublasSetMathMode");
  handle_of(handle).mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transpose_a,
                              cublasOperation_t transpose_b, int m, int n, int k, const float* alpha,
                              const float* a, int leading_a, const float* b, int leading_b, const float* beta,
                              float* c, int leading_c) {
  const RuntimeLock lock;
  const bool tf32 = handle_of(handle).mode == CUBLAS_TF32_TENSOR_OP_MATH;
  return queue_product(handle_of(handle), {.rows = m,
                                           .columns = n,
                                           .depth = k,
                                           .alpha = *alpha,
                                           .beta = *beta,
                                           .a = {a, CUDA_R_32F, leading_a, transpose_a != CUBLAS_OP_N},
                                           .b = {b, CUDA_R_32F, leading_b, transpose_b != CUBLAS_OP_N},
                                           .c = c,
                                           .leading_c = leading_c,
                                           .products = tf32 ? Products::tf32 : Products::plain});
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transpose_a,
                            cublasOperation_t transpose_b, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType type_a, int leading_a, const void* b,
                            cudaDataType type_b, int leading_b, const void* beta, void* c,
                            cudaDataType type_c, int leading_c, cublasComputeType_t compute,
                            cublasGemmAlgo_t) {
  const RuntimeLock lock;
  if (!is_supported(type_a) || type_a != type_b || type_c != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  Products products = type_a == CUDA_R_32F ? Products::plain : Products::exact_inputs;
  if (compute == CUBLAS_COMPUTE_32F_FAST_TF32 && type_a == CUDA_R_32F)
    products = Products::tf32;
  else if (compute == CUBLAS_COMPUTE_32F_FAST_16BF && type_a == CUDA_R_32F)
    products = Products::bfloat16;
  else if (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_PEDANTIC)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return queue_product(handle_of(handle), {.rows = m,
                                           .columns = n,
                                           .depth = k,
                                           .alpha = *static_cast<const float*>(alpha),
                                           .beta = *static_cast<const float*>(beta),
                                           .a = {a, type_a, leading_a, transpose_a != CUBLAS_OP_N},
                                           .b = {b, type_b, leading_b, transpose_b != CUBLAS_OP_N},
                                           .c = static_cast<float*>(c),
                                           .leading_c = leading_c,
                                           .products = products});
}

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "the operation completed successfully";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED: return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE: return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "the function failed to launch on the GPU";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "the functionality requested is not supported";
    default: return "unknown status";
  }
}

}  // extern "C"

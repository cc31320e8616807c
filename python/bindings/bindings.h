// Shared by the binding files: vectors borrowed from Python arrays, results moved into numpy arrays, and
// calls that run without the interpreter lock but react to Ctrl-C.
//
// nearwise._core is private. python/nearwise/*.py checks arguments and words the errors; this side checks
// again what would otherwise read or write invalid memory.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/exact.h"
#include "nearwise/filter.h"
#include "nearwise/graph/knn_graph.h"
#include "nearwise/kmeans.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"

namespace nearwise::python {

namespace nb = nanobind;

// One per file.
void bind_additive_quantizer(nb::module_& module);
void bind_choose_index(nb::module_& module);
void bind_context(nb::module_& module);
void bind_dedup(nb::module_& module);
void bind_device_memory(nb::module_& module);
void bind_error(nb::module_& module);
void bind_exact(nb::module_& module);
void bind_filter(nb::module_& module);
void bind_graph_export(nb::module_& module);
void bind_graph_index(nb::module_& module);
void bind_graph_structure(nb::module_& module);
void bind_ivf(nb::module_& module);
void bind_kmeans(nb::module_& module);
void bind_kmeans_parts(nb::module_& module);
void bind_knn_graph(nb::module_& module);
void bind_machine(nb::module_& module);
void bind_matrix(nb::module_& module);
void bind_merge_neighbors(nb::module_& module);
void bind_optimized_product_quantizer(nb::module_& module);
void bind_plan(nb::module_& module);
void bind_prepared_base(nb::module_& module);
void bind_product_quantizer(nb::module_& module);
void bind_rotation(nb::module_& module);
void bind_select_k(nb::module_& module);
void bind_smoothest_path(nb::module_& module);
void bind_storage(nb::module_& module);
void bind_vector_file(nb::module_& module);

// An array of another library, kept alive.
using Tensor = nb::ndarray<nb::ro>;

// The CUDA device that a tensor is on, or the host.
Place place_of(const Tensor& tensor);

// An array on a CUDA device. Its elements are complete: python/nearwise/_device_array.py waits for the
// producer's stream.
class DeviceArray {
 public:
  explicit DeviceArray(Tensor tensor) : tensor_(std::move(tensor)) {}
  DeviceArray(DeviceArray&&) = default;
  // The producer's deleter may run Python code, which must not lose an exception that is being raised.
  ~DeviceArray() {
    const nb::error_scope raised;
    tensor_ = Tensor();
  }

  const Tensor& tensor() const { return tensor_; }
  // Throws as BorrowedRows does.
  RowsView rows(ElementType type, const char* name) const;

 private:
  Tensor tensor_;
};

// An array's memory as Python describes it; strides in bytes.
struct ArrayLayout {
  const void* data;
  std::span<const std::int64_t> shape;
  std::span<const std::int64_t> strides;
  Place place;
};

// Throws Error(invalid_argument) in the argument's name unless that is 2-D, its rows aligned and apart, and
// their elements adjacent.
RowsView checked_rows(const ArrayLayout& layout, ElementType type, const char* name);

// A matrix of vectors, borrowed without a copy from a DeviceArray or from an object with the buffer protocol:
// the class `Rows` of nearwise._core. While it lives, numpy refuses to resize the array. Made and destroyed
// with the interpreter lock.
class BorrowedRows {
 public:
  // `name` is the argument's, for messages. The array must be 2-D, the elements of a row adjacent.
  BorrowedRows(nb::handle array, ElementType type, const char* name);
  ~BorrowedRows();
  BorrowedRows(const BorrowedRows&) = delete;
  BorrowedRows& operator=(const BorrowedRows&) = delete;

  const RowsView& view() const { return view_; }

 private:
  Py_buffer buffer_{};  // of a host array
  nb::object device_array_;
  RowsView view_;
};

template <typename T>
using NumpyMatrix = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

// The element type is known at run time only.
using ReadOnlyArray = nb::ndarray<nb::numpy, nb::ro>;

// Moves a matrix into a numpy array, without a copy.
template <typename T>
NumpyMatrix<T> to_numpy(Matrix<T>&& matrix) {
  // A matrix without memory has no pointer for the capsule.
  if (matrix.data() == nullptr) matrix = Matrix<T>(matrix.rows(), matrix.cols());
  const std::size_t rows = matrix.rows();
  const std::size_t cols = matrix.cols();
  T* const data = matrix.data();
  const nb::capsule owner(data, [](void* memory) noexcept { free_matrix(memory); });
  matrix.release();
  return NumpyMatrix<T>(data, {rows, cols}, owner);
}

// ids and distances
using NumpyNeighbors = std::pair<NumpyMatrix<Id>, NumpyMatrix<float>>;
NumpyNeighbors to_numpy(Neighbors&& neighbors);

template <typename T>
using NumpyVector = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

// Moves a vector into a numpy array, without a copy. T may differ from Element in its sign: counts are signed
// in numpy.
template <typename T, typename Element>
NumpyVector<T> to_numpy(std::vector<Element>&& vector) {
  static_assert(sizeof(T) == sizeof(Element));
  auto held = std::make_unique<std::vector<Element>>(std::move(vector));
  held->reserve(1);  // nanobind needs a non-null address
  T* const data = reinterpret_cast<T*>(held->data());
  const std::size_t size = held->size();
  const nb::capsule owner(held.get(),
                          [](void* memory) noexcept { delete static_cast<std::vector<Element>*>(memory); });
  static_cast<void>(held.release());  // owned by the capsule
  return NumpyVector<T>(data, {size}, owner);
}

// offsets, ids and distances, without a copy
using NumpyRangeNeighbors = std::tuple<NumpyVector<std::int64_t>, NumpyVector<Id>, NumpyVector<float>>;
NumpyRangeNeighbors to_numpy(RangeNeighbors&& found);

// Copies the arrays. Called without the interpreter lock, within `run`: large copies stop with
// Error(cancelled) once `context` is cancelled.
template <typename T>
Matrix<T> to_matrix(const Context& context, const NumpyMatrix<const T>& array);
Neighbors to_neighbors(const Context& context, const NumpyMatrix<const Id>& ids,
                       const NumpyMatrix<const float>& distances);

// The same; the report is empty.
KnnGraph to_knn_graph(const Context& context, const NumpyMatrix<const Id>& ids,
                      const NumpyMatrix<const float>& distances, const std::string& metric);

// Python passes 0 for None.
template <typename T>
std::optional<T> optional_of(T value) {
  return value == T{} ? std::nullopt : std::optional<T>(value);
}

// Python passes None for no filter.
inline Filter filter_of(const Filter* filter) { return filter == nullptr ? Filter() : *filter; }

// queries * base * dim: the cost of comparing every pair.
double multiplications(const RowsView& queries, const RowsView& base);

// "plus_plus" or "random"
Seeding parse_seeding(const std::string& text);

// The resolved settings of one call (nearwise.Context in Python): the class `Settings` of nearwise._core.
struct Settings {
  std::string device = "cpu";
  int threads = 0;
  std::uint64_t memory_limit = 0;
  std::string isa = {};
  std::uint64_t seed = 0;
  std::uint64_t memory_in_use = 0;

  Settings with_memory_limit(std::uint64_t limit) const;
  // Of the limit, by the object that the call uses. Without a limit nothing counts.
  Settings with_memory_in_use(std::uint64_t bytes) const;
};

// A context for one call, with its own cancellation. Contexts without a memory limit and seed are cached and
// shared. One with a limit is not: concurrent calls would exhaust each other's budget. Needs the interpreter
// lock, which also guards the cache; a forked child starts with an empty one.
Context context_for(const Settings& settings);

// Calls work(context) without the interpreter lock, on another thread. Meanwhile the calling thread checks
// for signals and reports progress every few milliseconds, so that Python code runs on the caller's thread
// only. An exception from either (Ctrl-C raises KeyboardInterrupt) cancels the work and is thrown once it has
// stopped.
void run(const Context& context, nb::handle progress, const std::function<void(const Context&)>& work);

// The same for functions without a context.
void run(const std::function<void()>& work);

// For work of about a millisecond: on the calling thread, without checking for signals.
void run_briefly(const Context& context, const std::function<void(const Context&)>& work);

// Calls `run_briefly` where `steps` (multiplications or values read) are few and no progress is reported,
// else `run`.
void run_by_size(const Context& context, nb::handle progress, double steps,
                 const std::function<void(const Context&)>& work);

}  // namespace nearwise::python

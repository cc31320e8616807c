// What the binding files share: rows borrowed from Python arrays, results given to numpy, and work that runs
// without the interpreter lock but answers Ctrl-C.
//
// The functions of nearwise._core are private: python/nearwise/*.py words the arguments, this side checks them
// again wherever a wrong one would reach memory.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/exact.h"
#include "nearwise/kmeans.h"
#include "nearwise/knn_graph.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"

namespace nearwise::python {

namespace nb = nanobind;

// One per public header, and one for the class in exact.h; context.cpp has nothing to bind, its part is further down.
void bind_additive_quantizer(nb::module_& module);
void bind_device_memory(nb::module_& module);
void bind_error(nb::module_& module);
void bind_exact(nb::module_& module);
void bind_graph_export(nb::module_& module);
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

// Memory of another library, which it keeps alive.
using Tensor = nb::ndarray<nb::ro>;

// The CUDA device that a tensor is on, or the host.
Place place_of(const Tensor& tensor);

// An array on a CUDA device. Whoever makes one has waited for its elements (python/nearwise/_device_array.py).
class DeviceArray {
 public:
  explicit DeviceArray(Tensor tensor) : tensor_(std::move(tensor)) {}

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

// Throws Error(invalid_argument) in the argument's name unless that is 2-D, its rows aligned and apart, and their
// elements adjacent.
RowsView checked_rows(const ArrayLayout& layout, ElementType type, const char* name);

// Rows of a DeviceArray or of a Python object that offers the buffer protocol, borrowed without a copy. While it lives,
// numpy refuses to resize the array. Made and destroyed with the interpreter lock held.
class BorrowedRows {
 public:
  // `name` is the argument's, for messages. The array must be 2-D with adjacent elements within a row.
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

// Of an element type known at run time.
using ReadOnlyArray = nb::ndarray<nb::numpy, nb::ro>;

// Gives the memory of a matrix to a numpy array, without a copy.
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

// Gives the memory of a vector to a numpy array, without a copy. T is the elements' type but for its sign: numpy's counts
// have one.
template <typename T, typename Element>
NumpyVector<T> to_numpy(std::vector<Element>&& vector) {
  static_assert(sizeof(T) == sizeof(Element));
  auto held = std::make_unique<std::vector<Element>>(std::move(vector));
  held->reserve(1);  // an array needs an address
  T* const data = reinterpret_cast<T*>(held->data());
  const std::size_t size = held->size();
  const nb::capsule owner(held.get(),
                          [](void* memory) noexcept { delete static_cast<std::vector<Element>*>(memory); });
  static_cast<void>(held.release());  // the capsule's now
  return NumpyVector<T>(data, {size}, owner);
}

// offsets, ids and distances, without a copy
using NumpyRangeNeighbors = std::tuple<NumpyVector<std::int64_t>, NumpyVector<Id>, NumpyVector<float>>;
NumpyRangeNeighbors to_numpy(RangeNeighbors&& found);

// The owning form that saving takes: this is a copy.
Neighbors to_neighbors(const NumpyMatrix<const Id>& ids, const NumpyMatrix<const float>& distances);

// A graph to ask, without the report of its build: this is a copy.
KnnGraph to_knn_graph(const NumpyMatrix<const Id>& ids, const NumpyMatrix<const float>& distances,
                      const std::string& metric);

// Of a search that looks at every pair.
double multiplications(const RowsView& queries, const RowsView& base);

// "plus_plus" or "random"
Seeding parse_seeding(const std::string& text);

// "refuse" or "pad"
ShortRows parse_short_rows(const std::string& text);

// A context for one call, with cancellation of its own. Contexts without a memory limit and a seed are kept and shared; a
// limit is one call's, or two calls at once would refuse each other's memory, and seeds are too many to keep. Needs the
// interpreter lock, which also guards the cache; a forked child starts with an empty one.
Context context_for(const std::string& device, int threads, std::uint64_t memory_limit,
                    const std::string& isa, std::uint64_t seed = 0);

// Calls work(context) without the interpreter lock. While it runs, the calling thread looks for signals and hands
// on progress every few milliseconds: Python code runs on no other thread. An exception from either (Ctrl-C is
// KeyboardInterrupt) cancels the work and is thrown once it has stopped.
void run(const Context& context, nb::handle progress, const std::function<void(const Context&)>& work);

// For work that is over in about a millisecond: on the calling thread, without looking for signals.
void run_briefly(const Context& context, const std::function<void(const Context&)>& work);

// One of the two: by the number of multiplications or values read, and whether progress is to be seen.
void run_by_size(const Context& context, nb::handle progress, double steps,
                 const std::function<void(const Context&)>& work);

}  // namespace nearwise::python

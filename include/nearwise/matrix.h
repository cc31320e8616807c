// Row-major matrices: a typed view, an owning matrix, and a view of vectors whose element type is known at
// run time.
//
// Views do not own their elements. Element i of row r lies at data[r * stride + i].
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "nearwise/export.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

template <typename T>
class MatrixView {
 public:
  MatrixView() = default;
  MatrixView(T* data, std::size_t rows, std::size_t cols) : MatrixView(data, rows, cols, cols) {}
  // stride: elements from one row to the next, at least cols
  MatrixView(T* data, std::size_t rows, std::size_t cols, std::size_t stride, Place place = {})
      : data_(data), rows_(rows), cols_(cols), stride_(stride), place_(place) {}

  operator MatrixView<const T>() const requires(!std::is_const_v<T>) {
    return {data_, rows_, cols_, stride_, place_};
  }

  T* data() const { return data_; }
  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  std::size_t stride() const { return stride_; }
  Place place() const { return place_; }
  std::span<T> row(std::size_t index) const { return {data_ + index * stride_, cols_}; }
  T& operator()(std::size_t row, std::size_t col) const { return data_[row * stride_ + col]; }
  MatrixView slice(std::size_t first, std::size_t count) const {
    return {data_ + first * stride_, count, cols_, stride_, place_};
  }

 private:
  T* data_ = nullptr;
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
  std::size_t stride_ = 0;
  Place place_;
};

// Allocates rows * cols * element_bytes with an overflow check, 64-byte aligned, uninitialised;
// throws Error(out_of_memory).
void* allocate_matrix(std::size_t rows, std::size_t cols, std::size_t element_bytes);
void free_matrix(void* data) noexcept;

// Owns host memory; movable, not copyable. Elements start uninitialised.
template <typename T>
class Matrix {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Matrix() = default;
  Matrix(std::size_t rows, std::size_t cols)
      : data_(static_cast<T*>(allocate_matrix(rows, cols, sizeof(T)))), rows_(rows), cols_(cols) {}
  // A moved-from matrix is 0 x 0.
  Matrix(Matrix&& other) noexcept
      : data_(std::move(other.data_)),
        rows_(std::exchange(other.rows_, 0)),
        cols_(std::exchange(other.cols_, 0)) {}
  Matrix& operator=(Matrix&& other) noexcept {
    data_ = std::move(other.data_);
    rows_ = std::exchange(other.rows_, 0);
    cols_ = std::exchange(other.cols_, 0);
    return *this;
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  MatrixView<T> view() { return {data_.get(), rows_, cols_}; }
  MatrixView<const T> view() const { return {data_.get(), rows_, cols_}; }
  operator MatrixView<const T>() const { return view(); }
  std::span<T> row(std::size_t index) { return view().row(index); }
  std::span<const T> row(std::size_t index) const { return view().row(index); }
  T& operator()(std::size_t row, std::size_t col) { return data_.get()[row * cols_ + col]; }
  const T& operator()(std::size_t row, std::size_t col) const { return data_.get()[row * cols_ + col]; }
  // The caller must free the memory with free_matrix.
  T* release() {
    rows_ = cols_ = 0;
    return data_.release();
  }

 private:
  struct Free {
    void operator()(T* data) const noexcept { free_matrix(data); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
};

// Vectors as rows, of an element type known at run time. All operations take their vectors as RowsView.
class RowsView {
 public:
  RowsView() = default;
  // stride_bytes: from one row to the next, at least dim * element_size(type)
  RowsView(const void* data, ElementType type, std::size_t rows, std::size_t dim, std::size_t stride_bytes,
           Place place = {})
      : data_(static_cast<const std::byte*>(data)),
        rows_(rows),
        dim_(dim),
        stride_bytes_(stride_bytes),
        type_(type),
        place_(place) {}

  // Implicit, so that a MatrixView or Matrix can be passed as vectors.
  template <typename T>
  RowsView(MatrixView<T> view)
      : RowsView(view.data(), ElementTypeOf<std::remove_const_t<T>>::value, view.rows(), view.cols(),
                 view.stride() * sizeof(T), view.place()) {}
  template <typename T>
  RowsView(const Matrix<T>& matrix) : RowsView(matrix.view()) {}

  std::size_t rows() const { return rows_; }
  std::size_t dim() const { return dim_; }
  std::size_t stride_bytes() const { return stride_bytes_; }
  ElementType type() const { return type_; }
  Place place() const { return place_; }
  const std::byte* data() const { return data_; }
  const std::byte* row(std::size_t index) const { return data_ + index * stride_bytes_; }
  RowsView slice(std::size_t first, std::size_t count) const {
    return {row(first), type_, count, dim_, stride_bytes_, place_};
  }

 private:
  const std::byte* data_ = nullptr;
  std::size_t rows_ = 0;
  std::size_t dim_ = 0;
  std::size_t stride_bytes_ = 0;
  ElementType type_ = ElementType::f32;
  Place place_;
};

}  // namespace nearwise

// Vectors of a test: numbers first, then the bytes of an element type in a layout that a caller might have.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "nearwise/matrix.h"
#include "nearwise/types.h"
#include "support/half.h"

namespace nearwise::support {

// Numbers before rounding to an element type, [rows, dim].
class Values {
 public:
  Values(std::size_t rows, std::size_t dim) : rows_(rows), dim_(dim), data_(rows * dim) {}
  std::size_t rows() const { return rows_; }
  std::size_t dim() const { return dim_; }
  double& operator()(std::size_t row, std::size_t i) { return data_[row * dim_ + i]; }
  double operator()(std::size_t row, std::size_t i) const { return data_[row * dim_ + i]; }
  std::span<double> row(std::size_t index) { return {data_.data() + index * dim_, dim_}; }
  std::span<const double> row(std::size_t index) const { return {data_.data() + index * dim_, dim_}; }

 private:
  std::size_t rows_;
  std::size_t dim_;
  std::vector<double> data_;
};

enum class Layout : std::uint8_t {
  dense,      // row after row
  padded,     // a gap of whole elements between rows, as in a slice of a wider matrix
  unaligned,  // odd start, stride not a multiple of the element size, as in mapped .bvecs files
};

inline std::string_view name(Layout layout) {
  switch (layout) {
    case Layout::dense: return "dense";
    case Layout::padded: return "padded";
    case Layout::unaligned: return "unaligned";
  }
  return "unknown";
}

// Bytes of rows. The allocation ends with the last element, so that AddressSanitizer sees a read beyond it,
// and gaps are filled with 0xFF, a NaN in every float type, so that a read of a gap changes or ends the
// search.
class Rows {
 public:
  Rows(const Values& values, ElementType type, Layout layout = Layout::dense)
      : Rows(type, values.rows(), values.dim(), layout) {
    for (std::size_t row = 0; row < rows_; ++row)
      for (std::size_t i = 0; i < dim_; ++i) set(row, i, values(row, i));
  }

  // Rounds to the element type, saturating. Integers are in units of 1/30, u8 drops the sign: standard normal
  // values then fill their range, zero stays zero, and huge values become the extremes.
  void set(std::size_t row, std::size_t i, double value) {
    switch (type_) {
      case ElementType::f32: put(row, i, static_cast<float>(value)); break;
      case ElementType::f16: put(row, i, to_float16(value)); break;
      case ElementType::bf16: put(row, i, to_bfloat16(value)); break;
      case ElementType::u8:
        put(row, i,
            static_cast<std::uint8_t>(std::clamp(std::nearbyint(std::fabs(value) * 30.0), 0.0, 255.0)));
        break;
      case ElementType::i8:
        put(row, i, static_cast<std::int8_t>(std::clamp(std::nearbyint(value * 30.0), -128.0, 127.0)));
        break;
    }
  }

  template <typename T>
  void put(std::size_t row, std::size_t i, T element) {
    std::memcpy(bytes_.data() + start_ + row * stride_ + i * sizeof(T), &element, sizeof(T));
  }

  RowsView view() const { return {bytes_.data() + start_, type_, rows_, dim_, stride_}; }
  operator RowsView() const { return view(); }
  std::size_t rows() const { return rows_; }

 private:
  Rows(ElementType type, std::size_t rows, std::size_t dim, Layout layout)
      : type_(type), rows_(rows), dim_(dim), start_(layout == Layout::unaligned ? 1 : 0) {
    const std::size_t size = element_size(type);
    stride_ = dim * size;
    if (layout == Layout::padded) stride_ += 5 * size;
    if (layout == Layout::unaligned) stride_ += 3;
    const std::size_t end = rows == 0 ? start_ : start_ + (rows - 1) * stride_ + dim * size;
    bytes_ = std::vector<std::byte>(end, std::byte{0xFF});
  }

  ElementType type_;
  std::size_t rows_;
  std::size_t dim_;
  std::size_t start_;
  std::size_t stride_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace nearwise::support

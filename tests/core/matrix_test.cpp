// Owning matrices and views: shapes, strides, moves, and sizes that cannot be.
#include "nearwise/matrix.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "nearwise/error.h"

namespace nearwise {
namespace {

static_assert(!std::is_copy_constructible_v<Matrix<float>> && !std::is_copy_assignable_v<Matrix<float>>);
static_assert(std::is_nothrow_move_constructible_v<Matrix<float>>);
static_assert(std::is_convertible_v<MatrixView<float>, MatrixView<const float>>);
static_assert(!std::is_convertible_v<MatrixView<const float>, MatrixView<float>>);
static_assert(std::is_convertible_v<const Matrix<std::int8_t>&, RowsView>);
static_assert(std::is_convertible_v<MatrixView<const BFloat16>, RowsView>);

TEST(Matrix, HoldsWhatIsPutIntoItRowByRow) {
  Matrix<std::uint8_t> matrix(3, 5);
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t col = 0; col < 5; ++col) matrix(row, col) = static_cast<std::uint8_t>(10 * row + col);
  for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(matrix.data()[i], 10 * (i / 5) + i % 5);
  EXPECT_EQ(matrix.row(2)[4], 24);
  EXPECT_EQ(std::as_const(matrix).row(1).size(), 5U);
  EXPECT_EQ(std::as_const(matrix)(1, 3), 13);
}

TEST(Matrix, IsAlignedToCacheLines) {
  for (std::size_t cols = 1; cols < 100; cols += 7) {
    const Matrix<float> matrix(3, cols);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(matrix.data()) % 64, 0U);
  }
}

TEST(Matrix, MayBeEmptyInEitherDirection) {
  const Matrix<float> no_rows(0, 7);
  const Matrix<float> no_cols(7, 0);
  EXPECT_EQ(no_rows.rows(), 0U);
  EXPECT_EQ(no_rows.cols(), 7U);
  EXPECT_EQ(no_cols.row(6).size(), 0U);
}

TEST(Matrix, SizesThatDoNotExistAreOutOfMemory) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  for (const auto& [rows, cols] : {std::pair{most, std::size_t{2}}, std::pair{most / 4, std::size_t{1}},
                                   std::pair{most / 4 + 1, std::size_t{1}}, std::pair{most, most},
                                   std::pair{std::size_t{1} << 32, std::size_t{1} << 32},
                                   std::pair{std::size_t{1} << 50, std::size_t{1}}}) {
    try {
      const Matrix<float> matrix(rows, cols);
      ADD_FAILURE() << rows << " x " << cols;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    }
  }
}

TEST(Matrix, AMoveTakesEverythingAndLeavesAnEmptyMatrix) {
  Matrix<float> source(2, 3);
  source(1, 2) = 7;
  const float* data = source.data();
  Matrix<float> target = std::move(source);
  EXPECT_EQ(target.data(), data);
  EXPECT_EQ(target(1, 2), 7);
  EXPECT_EQ(source.data(),
            nullptr);  // NOLINT(bugprone-use-after-move): what a move leaves is the contract tested
  EXPECT_EQ(source.rows(), 0U);
  EXPECT_EQ(source.cols(), 0U);
  source = std::move(target);
  EXPECT_EQ(source.data(), data);
  EXPECT_EQ(source.rows(), 2U);
  EXPECT_EQ(target.rows(), 0U);  // NOLINT(bugprone-use-after-move)
}

TEST(Matrix, ReleaseGivesTheMemoryAway) {
  Matrix<Id> matrix(4, 4);
  Id* data = matrix.release();
  EXPECT_EQ(matrix.rows(), 0U);
  EXPECT_EQ(matrix.data(), nullptr);
  data[15] = 1;
  free_matrix(data);
}

TEST(MatrixView, StrideSeparatesRowsAndSliceKeepsIt) {
  float values[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const MatrixView<float> view(values, 3, 2, 4);
  EXPECT_EQ(view(2, 1), 9);
  EXPECT_EQ(view.row(1).size(), 2U);
  const MatrixView<const float> tail = view.slice(1, 2);
  EXPECT_EQ(tail.rows(), 2U);
  EXPECT_EQ(tail.stride(), 4U);
  EXPECT_EQ(tail(1, 0), 8);
  view(0, 0) = 42;
  EXPECT_EQ(values[0], 42);
}

TEST(RowsView, KnowsTypeAndStrideOfWhatItWasMadeFrom) {
  Matrix<std::int8_t> matrix(4, 3);
  matrix(2, 1) = -5;
  const RowsView whole = matrix;
  EXPECT_EQ(whole.type(), ElementType::i8);
  EXPECT_EQ(whole.stride_bytes(), 3U);
  EXPECT_EQ(static_cast<std::int8_t>(whole.row(2)[1]), -5);

  float values[12] = {};
  const RowsView strided = MatrixView<const float>(values, 3, 2, 4, Place{DeviceKind::cuda, 1});
  EXPECT_EQ(strided.type(), ElementType::f32);
  EXPECT_EQ(strided.dim(), 2U);
  EXPECT_EQ(strided.stride_bytes(), 16U);
  EXPECT_EQ(strided.place(), (Place{DeviceKind::cuda, 1}));
  const RowsView part = strided.slice(1, 1);
  EXPECT_EQ(part.rows(), 1U);
  EXPECT_EQ(part.data(), strided.row(1));
  EXPECT_EQ(part.place(), strided.place());
}

}  // namespace
}  // namespace nearwise

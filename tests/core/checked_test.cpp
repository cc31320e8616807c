// Size arithmetic against 128-bit arithmetic, at and around the borders.
#include "core/checked.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace nearwise {
namespace {

__extension__ using Wide = unsigned __int128;

// The value, or the message of the refusal.
template <typename Call>
std::string outcome(Call call) {
  try {
    return std::to_string(call());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
    return "refused";
  }
}

template <typename T>
std::vector<T> interesting_values() {
  constexpr T most = std::numeric_limits<T>::max();
  constexpr int half_bits = std::numeric_limits<T>::digits / 2;
  constexpr T root = T{1} << half_bits;
  std::vector<T> values = {0, 1, 2, 3, 63, 64, 65, 127};
  for (const T centre : {root, static_cast<T>(most / 2), static_cast<T>(most / 3), static_cast<T>(most - 2)})
    for (int step = -2; step <= 2; ++step) values.push_back(static_cast<T>(centre + static_cast<T>(step)));
  return values;
}

template <typename T>
class Checked : public testing::Test {};
using SizeTypes = testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Checked, SizeTypes, );

TYPED_TEST(Checked, AgreesWithWiderArithmetic) {
  using T = TypeParam;
  constexpr Wide most = std::numeric_limits<T>::max();
  for (const T left : interesting_values<T>()) {
    for (const T right : interesting_values<T>()) {
      const Wide product = static_cast<Wide>(left) * right;
      const Wide sum = static_cast<Wide>(left) + right;
      EXPECT_EQ(outcome([&] { return checked_multiply(left, right, "x", ErrorCode::corrupt); }),
                product <= most ? std::to_string(static_cast<T>(product)) : "refused");
      EXPECT_EQ(outcome([&] { return checked_add(left, right, "x", ErrorCode::corrupt); }),
                sum <= most ? std::to_string(static_cast<T>(sum)) : "refused");
      if (right != 0) {
        const Wide quotient = (static_cast<Wide>(left) + right - 1) / right;
        EXPECT_EQ(divide_up(left, right), static_cast<T>(quotient));
        if (quotient * right <= most) {
          EXPECT_EQ(round_up(left, right), static_cast<T>(quotient * right));
        }
      }
    }
  }
}

TEST(CheckedMessage, NamesOperationOperandsAndWidth) {
  try {
    checked_multiply<std::uint32_t>(1U << 20, 1U << 12, "header of a.fbin");
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_STREQ(error.what(), "header of a.fbin: 1048576 * 4096 does not fit in 32 bits");
  }
}

static_assert(divide_up(0U, 8U) == 0 && divide_up(1U, 8U) == 1 && divide_up(8U, 8U) == 1 &&
              divide_up(9U, 8U) == 2);
static_assert(round_up(0U, 64U) == 0 && round_up(1U, 64U) == 64 && round_up(64U, 64U) == 64);

}  // namespace
}  // namespace nearwise

// Names and words of the interface: what parses, what does not, and what the refusal says.
#include "nearwise/types.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

#include "nearwise/error.h"

namespace nearwise {
namespace {

constexpr std::array every_element_type = {ElementType::f32, ElementType::f16, ElementType::bf16,
                                           ElementType::u8, ElementType::i8};
constexpr std::array every_metric = {Metric::sqeuclidean, Metric::euclidean, Metric::inner_product,
                                     Metric::cosine};

template <typename Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

TEST(Types, EveryElementTypeNameParsesToItself) {
  std::set<std::string_view> names;
  for (const ElementType type : every_element_type) {
    EXPECT_EQ(parse_element_type(name(type)), type);
    names.insert(name(type));
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"f32", "f16", "bf16", "u8", "i8"}));
}

TEST(Types, EveryMetricNameParsesToItself) {
  std::set<std::string_view> names;
  for (const Metric metric : every_metric) {
    EXPECT_EQ(parse_metric(name(metric)), metric);
    names.insert(name(metric));
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"sqeuclidean", "euclidean", "inner_product", "cosine"}));
}

TEST(Types, RefusalsNameTheAcceptedWordsAndTheGivenOne) {
  EXPECT_EQ(refusal([] { parse_metric("l2"); }),
            "metric: expected one of sqeuclidean, euclidean, inner_product, cosine, got 'l2'");
  EXPECT_EQ(refusal([] { parse_element_type("float"); }),
            "element type: expected one of f32, f16, bf16, u8, i8, got 'float'");
}

TEST(Types, ParsingTakesWholeWordsInLowerCaseOnly) {
  for (const char* text : {"", " ", "F32", "f32 ", " f32", "f3", "f320", "u8,i8", "{}"})
    EXPECT_NE(refusal([&] { parse_element_type(text); }).find(text), std::string::npos);
  for (const char* text : {"", "Cosine", "cosine ", "inner", "euclidean2"})
    EXPECT_NE(refusal([&] { parse_metric(text); }).find(text), std::string::npos);
}

TEST(Types, ElementSizesAreThoseOfTheStorageTypes) {
  EXPECT_EQ(element_size(ElementTypeOf<float>::value), sizeof(float));
  EXPECT_EQ(element_size(ElementTypeOf<Float16>::value), sizeof(Float16));
  EXPECT_EQ(element_size(ElementTypeOf<BFloat16>::value), sizeof(BFloat16));
  EXPECT_EQ(element_size(ElementTypeOf<std::uint8_t>::value), sizeof(std::uint8_t));
  EXPECT_EQ(element_size(ElementTypeOf<std::int8_t>::value), sizeof(std::int8_t));
}

TEST(Types, ValuesOutsideTheEnumerationAreNamedUnknownAndHaveNoSize) {
  EXPECT_EQ(name(static_cast<ElementType>(99)), "unknown");
  EXPECT_EQ(name(static_cast<Metric>(99)), "unknown");
  EXPECT_THROW(element_size(static_cast<ElementType>(99)), Error);
}

TEST(Types, PlacesAreEqualIfKindAndOrdinalAre) {
  EXPECT_EQ(Place{}, (Place{DeviceKind::cpu, 0}));
  EXPECT_NE((Place{DeviceKind::cuda, 0}), Place{});
  EXPECT_NE((Place{DeviceKind::cuda, 0}), (Place{DeviceKind::cuda, 1}));
  EXPECT_EQ(name(DeviceKind::cpu), "cpu");
  EXPECT_EQ(name(DeviceKind::cuda), "cuda");
  EXPECT_EQ(name(Place{}), "cpu");
  EXPECT_EQ(name(Place{DeviceKind::cuda, 3}), "cuda:3");
}

}  // namespace
}  // namespace nearwise

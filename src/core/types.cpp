#include "nearwise/types.h"

#include <array>

#include "core/check.h"

namespace nearwise {
namespace {

constexpr std::array element_types = {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::u8,
                                      ElementType::i8};
constexpr std::array metrics = {Metric::sqeuclidean, Metric::euclidean, Metric::inner_product,
                                Metric::cosine};

template <typename Values>
auto parse(std::string_view what, std::string_view text, const Values& values) {
  std::string accepted;
  for (const auto value : values) {
    if (name(value) == text) return value;
    accepted += accepted.empty() ? "" : ", ";
    accepted += name(value);
  }
  fail(ErrorCode::invalid_argument, "{}: expected one of {}, got '{}'", what, accepted, text);
}

}  // namespace

std::size_t element_size(ElementType type) {
  switch (type) {
    case ElementType::f32: return 4;
    case ElementType::f16:
    case ElementType::bf16: return 2;
    case ElementType::u8:
    case ElementType::i8: return 1;
  }
  fail(ErrorCode::internal, "element_size: unknown element type {}", static_cast<int>(type));
}

std::string_view name(ElementType type) {
  switch (type) {
    case ElementType::f32: return "f32";
    case ElementType::f16: return "f16";
    case ElementType::bf16: return "bf16";
    case ElementType::u8: return "u8";
    case ElementType::i8: return "i8";
  }
  return "unknown";
}

std::string_view name(Metric metric) {
  switch (metric) {
    case Metric::sqeuclidean: return "sqeuclidean";
    case Metric::euclidean: return "euclidean";
    case Metric::inner_product: return "inner_product";
    case Metric::cosine: return "cosine";
  }
  return "unknown";
}

std::string_view name(DeviceKind kind) { return kind == DeviceKind::cpu ? "cpu" : "cuda"; }

std::string_view name(OnDuplicate choice) {
  switch (choice) {
    case OnDuplicate::replace: return "replace";
    case OnDuplicate::keep: return "keep";
    case OnDuplicate::refuse: break;
  }
  return "refuse";
}

std::string name(Place place) {
  return place.kind == DeviceKind::cpu ? "cpu" : fmt::format("{}:{}", name(place.kind), place.ordinal);
}

ElementType parse_element_type(std::string_view text) { return parse("element type", text, element_types); }

Metric parse_metric(std::string_view text) { return parse("metric", text, metrics); }

}  // namespace nearwise

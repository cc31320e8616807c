// Fuzz target: the input is a search problem. Its answer at one instruction set must be that of the oracle,
// to the bit.
//
// The first bytes choose types, metric, shape and instruction set, the others are the bits of elements, used
// again from the start (one byte further each time) where they do not suffice. Whatever bits a float may have
// do occur: denormals, huge numbers, negative zeros. Bits of NaN and infinity are made finite, but for one
// input in 16, which must be refused.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/error.h"
#include "nearwise/exact.h"
#include "nearwise/machine.h"
#include "oracle/knn.h"

namespace {

using namespace nearwise;

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::uint8_t byte() {
    if (place_ == size_) place_ = ++laps_ % size_;
    return data_[place_++];
  }
  std::size_t number(std::size_t bound) {
    const std::size_t high = byte();
    return (high << 8 | byte()) % bound;
  }
  // What follows is the first part of what may be used again.
  void begin_elements() {
    data_ += place_;
    size_ -= place_;
    place_ = 0;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t place_ = 0;
  std::size_t laps_ = 0;
};

struct Style {
  bool narrow;         // exponents within a few powers of two, where the last bits of products decide
  bool similar_rows;   // rows repeat the first few but for their last bits
  bool allow_special;  // NaN and infinity
};

// Rows at an odd address, the allocation ending with the last element.
struct Rows {
  std::vector<std::byte> bytes;
  ElementType type;
  std::size_t rows;
  std::size_t dim;
  RowsView view() const { return {bytes.data() + 1, type, rows, dim, dim * element_size(type)}; }
};

// sign, exponent, fraction: `exponent_bits` wide, the rest of `width` is the fraction.
std::uint32_t shaped(std::uint32_t bits, int width, int exponent_bits, const Style& style) {
  const int fraction_bits = width - 1 - exponent_bits;
  const std::uint32_t all_ones = (1U << exponent_bits) - 1U;
  std::uint32_t exponent = bits >> fraction_bits & all_ones;
  const std::uint32_t rest = bits & ~(all_ones << fraction_bits);
  if (style.narrow) exponent = all_ones / 2 + exponent % 4;
  if (exponent == all_ones && !style.allow_special) --exponent;
  return rest | exponent << fraction_bits;
}

Rows read_rows(Input& input, ElementType type, std::size_t rows, std::size_t dim, const Style& style) {
  const std::size_t size = element_size(type);
  Rows out = {std::vector<std::byte>(1 + rows * dim * size), type, rows, dim};
  for (std::size_t index = 0; index < rows * dim; ++index) {
    std::byte* element = out.bytes.data() + 1 + index * size;
    const std::size_t originals = 3 * dim;
    if (style.similar_rows && index >= originals) {
      std::memcpy(element, out.bytes.data() + 1 + index % originals * size, size);
      element[0] ^= std::byte(input.byte() & 3U);  // little-endian: the last bits
      continue;
    }
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < size; ++i) bits = bits << 8 | input.byte();
    if (type == ElementType::f32) bits = shaped(bits, 32, 8, style);
    if (type == ElementType::bf16) bits = shaped(bits, 16, 8, style);
    if (type == ElementType::f16) bits = shaped(bits, 16, 5, style);
    std::memcpy(element, &bits, size);
  }
  return out;
}

bool all_finite(const Rows& rows) {
  const std::vector<double> values = oracle::to_doubles(rows.view());
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

const std::vector<Context>& contexts() {
  static const std::vector<Context> made = [] {
    std::vector<Context> list;
    for (const std::string& isa : instruction_sets())
      list.push_back(Context::cpu({.threads = 1, .isa = isa}));
    return list;
  }();
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t head = 16;
  if (size < head + 4) return -1;
  constexpr std::array types = {ElementType::f32, ElementType::u8, ElementType::bf16, ElementType::i8,
                                ElementType::f16};
  constexpr std::array metrics = {Metric::sqeuclidean, Metric::inner_product, Metric::cosine,
                                  Metric::euclidean};
  Input input(data, size);
  const ElementType base_type = types[input.number(types.size())];
  const ElementType query_type = input.byte() < 160 ? base_type : types[input.byte() % types.size()];
  const Metric metric = metrics[input.byte() % metrics.size()];
  const std::size_t dim = 1 + input.byte() % 140U;
  const std::size_t queries = 1 + input.byte() % 48U;
  // The oracle's work is bounded, so that thousands of inputs are tried in a minute.
  const std::size_t rows = std::min(1 + input.number(700), 1 + 120'000 / (dim * queries));
  const std::size_t k = std::min(1 + input.number(260), rows + 2);
  const Context& context = contexts()[input.byte() % contexts().size()];
  const std::uint8_t style_bits = input.byte();
  const Style style = {(style_bits & 1U) != 0, (style_bits & 2U) != 0, style_bits >> 4 == 15};
  input.begin_elements();
  const Rows base = read_rows(input, base_type, rows, dim, style);
  const Rows query_rows = read_rows(input, query_type, queries, dim, style);

  const std::string problem = "exact_knn: " + std::string(name(metric)) + " [" + std::to_string(queries) +
                              ", " + std::to_string(dim) + "] " + std::string(name(query_type)) +
                              " against [" + std::to_string(rows) + ", " + std::to_string(dim) + "] " +
                              std::string(name(base_type)) + ", k " + std::to_string(k) + " at " +
                              context.isa();
  const auto fail = [&](const std::string& what) {
    std::fprintf(stderr, "%s: %s\n", problem.c_str(), what.c_str());
    __builtin_trap();
  };
  const KnnOptions options = {.metric = metric, .short_rows = ShortRows::pad};
  const bool sound = all_finite(base) && all_finite(query_rows);
  Neighbors given;
  try {
    given = knn(context, query_rows.view(), base.view(), k, options);
    if (!sound) fail("a number that is not finite was accepted");
  } catch (const Error& error) {
    if (sound || error.code() != ErrorCode::invalid_argument) fail(error.what());
    return 0;
  }
  const oracle::Answer expected = oracle::knn(query_rows.view(), base.view(), k, metric);
  for (std::size_t i = 0; i < queries * k; ++i)
    if (given.ids.data()[i] != expected.ids[i] || std::bit_cast<std::uint32_t>(given.distances.data()[i]) !=
                                                      std::bit_cast<std::uint32_t>(expected.distances[i]))
      fail("query " + std::to_string(i / k) + " rank " + std::to_string(i % k) + ": expected " +
           std::to_string(expected.ids[i]) + " at " + std::to_string(expected.distances[i]) + ", got " +
           std::to_string(given.ids.data()[i]) + " at " + std::to_string(given.distances.data()[i]));
  return 0;
}

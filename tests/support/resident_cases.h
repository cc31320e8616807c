// Inverted files for tests of lists that a device keeps: generated shapes, changes, and the CPU's answers.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "nearwise/ivf.h"
#include "support/graph_cases.h"
#include "support/ivf_cases.h"

namespace nearwise::support {

// Shape `number` of a metric: flat lists of f32 and u8, product and additive codes, with and without kept
// vectors.
class ResidentCase {
 public:
  ResidentCase(Metric metric, std::uint64_t number)
      : shape_(shape_of(metric, number)),
        problem_(make_problem({.kind = shape_.kind,
                               .rows = shape_.rows,
                               .queries = shape_.queries,
                               .dim = shape_.dim,
                               .base_type = shape_.type,
                               .query_type = shape_.type,
                               .base_layout = Layout::dense,
                               .query_layout = Layout::padded,
                               .seed = shape_.seed})),
        index(Ivf::build(one_thread(), base().slice(0, shape_.rows / 2),
                         {.metric = metric,
                          .lists = shape_.lists,
                          .iterations = 2,
                          .encoding = shape_.encoding,
                          .vectors = shape_.vectors},
                         std::nullopt)) {}

  RowsView base() const { return problem_.base; }
  RowsView queries() const { return problem_.queries; }

  // Whether a search on this device returns the CPU's bytes; also_codes: with and without re-ranking.
  ::testing::AssertionResult is_right(const Context& context, bool also_codes = false) const {
    for (const bool codes_only : {false, true}) {
      if (codes_only && (!also_codes || index.vector_bytes() == 0)) continue;
      IvfSearchOptions options = {.probes = shape_.probes, .codes_only = codes_only};
      if (!codes_only) options.candidates = shape_.k + shape_.more_candidates;
      const Neighbors expected = index.search(one_thread(), queries(), shape_.k, options);
      const Neighbors found = index.search(context, queries(), shape_.k, options);
      if (!same_bytes(expected, found))
        return ::testing::AssertionFailure() << (codes_only ? "by codes" : "re-ranked");
    }
    return ::testing::AssertionSuccess();
  }

  // check(what) after each kind of change.
  template <typename Check>
  void change(const Check& check) {
    const Context& cpu = one_thread();
    const std::size_t half = shape_.rows / 2;
    const std::size_t quarter = shape_.rows / 4;
    index.add(cpu, base().slice(half, quarter));
    check("after add()");
    std::vector<Id> some;
    for (std::size_t id = 0; id < half + quarter; id += 3) some.push_back(static_cast<Id>(id));
    index.remove(cpu, some);
    check("after remove()");
    const std::vector<Id> ids = {1, 2, static_cast<Id>(half + 1 - (half + 1) % 3 + 1)};
    std::vector<Id> present;
    for (const Id id : ids)
      if (index.contains(id) && std::ranges::find(present, id) == present.end()) present.push_back(id);
    index.update(cpu, present, base().slice(half + quarter, present.size()));
    check("after update()");
    index.compact();
    check("after compact()");
    Ivf other = index.empty_copy();
    const std::size_t rest = shape_.rows - half - quarter;
    std::vector<Id> far(rest);
    for (std::size_t i = 0; i < rest; ++i) far[i] = static_cast<Id>(5000 + 7 * i);
    other.add(cpu, base().slice(half + quarter, rest), far);
    index.merge(cpu, other);
    check("after merge()");
  }

  std::string describe() const {
    return fmt::format(
        "{} {} {}, {} rows, {} queries, d {}, {} of {} lists, encoding {}, vectors {}, k {} + {}",
        name(shape_.kind), name(index.metric()), name(shape_.type), shape_.rows, shape_.queries, shape_.dim,
        shape_.probes, shape_.lists, index.encoding(), name(shape_.vectors), shape_.k,
        shape_.more_candidates);
  }

 private:
  struct Shape {
    Kind kind = Kind::normal;
    ElementType type = ElementType::f32;
    std::size_t rows = 0;
    std::size_t queries = 0;
    std::size_t dim = 0;
    std::size_t lists = 0;
    std::size_t probes = 0;
    Encoding encoding = Flat{};
    VectorStorage vectors = VectorStorage::keep;
    std::size_t k = 0;
    std::size_t more_candidates = 0;
    std::uint64_t seed = 0;
  };

  static Shape shape_of(Metric metric, std::uint64_t number) {
    // Of moderate size: vectors that are coded are bounded.
    constexpr std::array kinds = {
        Kind::normal,           Kind::uniform,   Kind::integers,   Kind::near_duplicates,
        Kind::exact_duplicates, Kind::zero_rows, Kind::offset_1e4, Kind::sparse};
    constexpr std::array<std::size_t, 8> dims = {1, 2, 5, 8, 16, 17, 24, 33};
    constexpr std::array storages = {VectorStorage::keep, VectorStorage::f16, VectorStorage::u8,
                                     VectorStorage::none};
    constexpr std::size_t least_coded_rows = 512;  // twice the codewords of a codebook
    const std::uint64_t seed = 1000 * static_cast<std::uint64_t>(metric) + number;
    const Random random = random_for(seed, Purpose::shapes);
    Shape shape = {.kind = kinds[number % kinds.size()],
                   .rows = 60 + random.below(1, 150),
                   .queries = 1 + random.below(2, 5),
                   .dim = dims[random.below(3, dims.size())],
                   .lists = 1 + random.below(4, 9),
                   .k = 1 + random.below(5, random.below(6, 2) == 0 ? 5 : 40),
                   .more_candidates = random.below(7, 40),
                   .seed = seed};
    shape.probes = 1 + random.below(8, shape.lists);
    switch (number % 4) {
      case 0: break;
      case 1: shape.type = random.below(9, 2) == 0 ? ElementType::u8 : ElementType::f16; break;
      case 2:
        shape.encoding = Pq{.code_bytes = 1 + random.below(10, (shape.dim + 1) / 2),
                            .bits = random.below(14, 4) == 0 ? 8U : 4U};
        if (std::get<Pq>(shape.encoding).bits == 8) shape.rows += least_coded_rows;
        shape.vectors = storages[random.below(11, storages.size())];
        break;
      default:
        shape.dim = std::min<std::size_t>(shape.dim, 8);
        shape.rows += least_coded_rows;
        shape.encoding = Lsq{.code_bytes = 1 + random.below(12, 2),
                             .rounds = 1,
                             .train_iterations = 1,
                             .encode_iterations = 1};
        shape.vectors = storages[random.below(13, storages.size())];
    }
    return shape;
  }

  const Shape shape_;
  const Problem problem_;

 public:
  Ivf index;
};

}  // namespace nearwise::support

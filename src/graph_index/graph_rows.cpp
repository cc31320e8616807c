#include "graph_index/graph_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "core/checked.h"
#include "ops/gather_rows.h"

namespace nearwise::graph_index {
namespace {

constexpr std::size_t part_rows = 1024;

// Calls work(first, end) for parts of [0, count) on all threads.
template <typename Work>
void for_parts(const Context& context, std::size_t count, const Work& work) {
  const Context::State& caller = context.state();
  caller.threads->for_each(divide_up(count, part_rows), [&](std::size_t task) {
    caller.cancel.check();
    work(task * part_rows, std::min(count, (task + 1) * part_rows));
  });
}

template <typename T>
void copy_all(const Context& context, const T* from, std::size_t count, std::size_t width, T* to) {
  for_parts(context, count, [&](std::size_t first, std::size_t end) {
    std::memcpy(to + first * width, from + first * width, (end - first) * width * sizeof(T));
  });
}

}  // namespace

void encode_rows(const Context& context, const ScalarCodec& codec, const RowsView& source, std::size_t count,
                 const std::function<std::size_t(std::size_t)>& source_row, std::uint8_t* codes) {
  for_parts(context, count, [&](std::size_t first, std::size_t end) {
    std::vector<double> scratch(codec.code_dim());
    for (std::size_t row = first; row < end; ++row)
      codec.encode(source, source_row(row), scratch.data(), codes + row * codec.row_bytes());
  });
}

void encode_nibbles(const Context& context, const ScalarCodec& codec, const std::uint8_t* codes,
                    std::size_t count, std::uint8_t* nibbles) {
  for_parts(context, count, [&](std::size_t first, std::size_t end) {
    for (std::size_t row = first; row < end; ++row)
      codec.encode_nibbles(codes + row * codec.row_bytes(), nibbles + row * codec.nibble_row_bytes());
  });
}

GraphRows GraphRows::with_capacity(MemoryBudget& budget, std::shared_ptr<const ScalarCodec> codec,
                                   ElementType type, std::size_t degree, std::size_t room) {
  const auto bytes = [&](std::size_t row_bytes) {
    return checked_multiply(room, row_bytes, "bytes of rows");
  };
  GraphRows rows;
  rows.codec = std::move(codec);
  rows.capacity = room;
  rows.degree_ = degree;
  rows.type_ = type;
  rows.own_codes = Buffer<std::uint8_t>(budget, bytes(rows.codec->row_bytes()));
  rows.own_nibbles = Buffer<std::uint8_t>(budget, bytes(rows.codec->nibble_row_bytes()));
  rows.own_edges = Buffer<std::int32_t>(budget, bytes(degree));
  if (!are_vectors_codes(*rows.codec, type))
    rows.own_vectors = Buffer<std::byte>(budget, bytes(rows.codec->dim * element_size(type)));
  rows.own_ids = Buffer<Id>(budget, room);
  use_huge_pages(rows.own_codes.data(), rows.own_codes.size());
  use_huge_pages(rows.own_nibbles.data(), rows.own_nibbles.size());
  use_huge_pages(rows.own_edges.data(), rows.own_edges.size() * sizeof(std::int32_t));
  rows.set_count(0);
  return rows;
}

GraphRows GraphRows::copy(const Context& context, MemoryBudget& budget, std::size_t room) const {
  GraphRows made = with_capacity(budget, codec, vectors.type(), edges.cols(), room);
  copy_all(context, codes.data(), count(), codes.cols(), made.own_codes.data());
  copy_all(context, nibbles.data(), nibbles.rows(), nibbles.cols(), made.own_nibbles.data());
  copy_all(context, edges.data(), count(), edges.cols(), made.own_edges.data());
  if (made.own_vectors.size() != 0)
    gather_rows(
        context, vectors, count(),
        [](std::size_t row) {
          return PlacedRow{row, row};
        },
        made.own_vectors.data());
  if (ids.empty())
    std::iota(made.own_ids.data(), made.own_ids.data() + count(), Id{0});
  else
    std::ranges::copy(ids, made.own_ids.data());
  made.set_count(count());
  return made;
}

void GraphRows::write_behind(const Context& context, const RowsView& source) {
  const std::size_t more = source.rows();
  std::uint8_t* const new_codes = own_codes.data() + count() * codec->row_bytes();
  encode_rows(context, *codec, source, more, std::identity(), new_codes);
  if (codec->has_nibbles())
    encode_nibbles(context, *codec, new_codes, more,
                   own_nibbles.data() + count() * codec->nibble_row_bytes());
  if (own_vectors.size() == 0) return;
  gather_rows(
      context, source, more,
      [](std::size_t row) {
        return PlacedRow{row, row};
      },
      own_vectors.data() + count() * row_bytes_of(source));
}

void GraphRows::copy_behind(const Context& context, const GraphRows& source,
                            std::span<const std::uint32_t> rows) {
  const std::size_t code_bytes = codec->row_bytes();
  const std::size_t nibble_bytes = codec->nibble_row_bytes();
  const std::size_t vector_bytes = own_vectors.size() == 0 ? 0 : row_bytes_of(source.vectors);
  for_parts(context, rows.size(), [&](std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
      const std::size_t row = count() + i;
      std::memcpy(own_codes.data() + row * code_bytes, source.codes.row(rows[i]).data(), code_bytes);
      if (nibble_bytes != 0)
        std::memcpy(own_nibbles.data() + row * nibble_bytes, source.nibbles.row(rows[i]).data(),
                    nibble_bytes);
      if (vector_bytes != 0)
        std::memcpy(own_vectors.data() + row * vector_bytes, source.vectors.row(rows[i]), vector_bytes);
      own_ids[row] = source.id_of(rows[i]);
    }
  });
}

GraphRowViews GraphRows::own_views(std::size_t rows) const {
  GraphRowViews views;
  views.codes = {own_codes.data(), rows, codec->row_bytes()};
  if (codec->has_nibbles()) views.nibbles = {own_nibbles.data(), rows, codec->nibble_row_bytes()};
  views.edges = {own_edges.data(), rows, degree_};
  if (are_vectors_codes(*codec, type_))
    views.vectors = {own_codes.data(), type_, rows, codec->dim, codec->row_bytes()};
  else
    views.vectors = {own_vectors.data(), type_, rows, codec->dim, codec->dim * element_size(type_)};
  views.ids = own_ids.span().first(rows);
  return views;
}

void GraphRows::set_count(std::size_t rows) noexcept { static_cast<GraphRowViews&>(*this) = own_views(rows); }

}  // namespace nearwise::graph_index

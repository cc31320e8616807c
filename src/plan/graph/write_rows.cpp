#include "plan/graph/write_rows.h"

#include <algorithm>
#include <array>
#include <future>

#include "backend/context_state.h"
#include "core/checked.h"
#include "core/memory.h"

namespace nearwise::plan {
namespace {

constexpr std::size_t task_rows = 256;  // small, because make() may copy whole vectors

}  // namespace

void write_rows(const Context& context, ContainerWriter& writer, std::size_t count, std::size_t row_bytes,
                const std::function<void(std::size_t, std::byte*)>& make) {
  const Context::State& state = context.state();
  const std::size_t piece_rows = std::max<std::size_t>(1, writing_bytes / 2 / row_bytes);
  std::array<Buffer<std::byte>, 2> pieces;
  for (auto& piece : pieces)
    piece = Buffer<std::byte>(*state.budget, std::min(piece_rows, count) * row_bytes);
  std::future<void> writing;  // destroyed before the pieces, which waits for a pending write if make() throws
  for (std::size_t first = 0, turn = 0; first < count; first += piece_rows, ++turn) {
    std::byte* const piece = pieces[turn % 2].data();
    const std::size_t rows = std::min(piece_rows, count - first);
    state.threads->for_each(divide_up(rows, task_rows), [&](std::size_t task) {
      state.cancel.check();
      for (std::size_t i = task * task_rows; i < std::min(rows, (task + 1) * task_rows); ++i)
        make(first + i, piece + i * row_bytes);
    });
    if (writing.valid()) writing.get();
    writing = std::async(std::launch::async, [&writer, piece, bytes = rows * row_bytes] {
      writer.append({piece, bytes});
    });
  }
  if (writing.valid()) writing.get();
}

}  // namespace nearwise::plan

#include "plan/tasks/write_rows.h"

#include <algorithm>
#include <array>
#include <span>

#include "backend/context_state.h"
#include "core/checked.h"
#include "core/memory.h"

namespace nearwise::plan {
namespace {

constexpr std::size_t max_task_rows = 256;   // small, because make() may copy whole vectors
constexpr std::size_t tasks_per_thread = 4;  // of a piece

}  // namespace

void write_rows(const Context& context, ContainerWriter& writer, std::size_t count, std::size_t row_bytes,
                const std::function<void(std::size_t, std::byte*)>& make) {
  const Context::State& state = context.state();
  const std::size_t piece_rows = std::max<std::size_t>(1, writing_bytes / 2 / row_bytes);
  const auto threads = static_cast<std::size_t>(state.threads->count());
  const std::size_t task_rows =
      std::clamp<std::size_t>(piece_rows / (tasks_per_thread * threads), 1, max_task_rows);
  std::array<Buffer<std::byte>, 2> pieces;
  for (auto& piece : pieces)
    piece = Buffer<std::byte>(*state.budget, std::min(piece_rows, count) * row_bytes);
  std::span<const std::byte> finished;
  for (std::size_t first = 0, turn = 0; first < count; first += piece_rows, ++turn) {
    std::byte* const piece = pieces[turn % 2].data();
    const std::size_t rows = std::min(piece_rows, count - first);
    // One thread writes the last piece while the others make the next one.
    state.threads->for_each(1 + divide_up(rows, task_rows), [&](std::size_t task) {
      state.cancel.check();
      if (task == 0) {
        writer.append(finished);
        return;
      }
      for (std::size_t i = (task - 1) * task_rows; i < std::min(rows, task * task_rows); ++i)
        make(first + i, piece + i * row_bytes);
    });
    finished = {piece, rows * row_bytes};
  }
  writer.append(finished);
}

}  // namespace nearwise::plan

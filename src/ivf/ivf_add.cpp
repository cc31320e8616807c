// Inverted files: adding vectors. Lists and codes are found first; nothing is appended until all can be.
#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "backend/stages.h"
#include "cluster/centroid_search.h"
#include "core/float_environment.h"
#include "core/fork.h"
#include "core/lost_pages.h"
#include "index/given_rows.h"
#include "ivf/addition.h"
#include "ivf/ivf_state.h"
#include "ivf/memory_needs.h"
#include "ivf/removal.h"
#include "nearwise/kmeans.h"
#include "ops/check_rows.h"
#include "ops/finite_rows.h"
#include "ops/gather_rows.h"
#include "ops/knn_plan.h"
#include "ops/memory_limit.h"
#include "quantize/residuals.h"

namespace nearwise {

namespace ivf {

Addition::Addition(IvfInternals::State& state, const Context& context, const RowsView& rows,
                   Buffer<std::uint32_t> file_rows)
    : state_(state),
      context_(context),
      rows_(rows),
      nearest_(*context.state().budget, rows.rows()),
      scratch_(state.rows.vector_bytes()),
      file_rows_(std::move(file_rows)) {}

std::uint64_t Addition::next_file_row(std::uint64_t least) const {
  for (const std::uint32_t row : file_rows_.span()) least = std::max<std::uint64_t>(least, row + 1ULL);
  return least;
}

double Addition::assign_cost() const { return cluster::assignment_cost(rows_, state_.rows.lists()); }

double Addition::encode_cost() const {
  return state_.is_flat() ? 0 : state_.codec->encode_cost(rows_.rows());
}

void Addition::assign(const Context& context) {
  Stages stages(context, "add");
  for (std::size_t first = 0; first < rows_.rows(); first += added_batch_rows) {
    const RowsView batch = rows_.slice(first, std::min(added_batch_rows, rows_.rows() - first));
    const Neighbors found =
        nearwise::assign(stages.next(static_cast<double>(batch.rows()),
                                     static_cast<double>(rows_.rows() - first - batch.rows())),
                         batch, state_.centroids, {.metric = state_.metric});
    for (std::size_t i = 0; i < batch.rows(); ++i)
      nearest_[first + i] = static_cast<std::uint32_t>(found.ids.data()[i]);
  }
  stages.finish();
}

void Addition::encode(const Context& context, std::size_t first, std::size_t count, std::uint8_t* codes) {
  if (state_.is_flat()) return;
  const std::size_t code_bytes = state_.rows.code_bytes();
  MemoryBudget& budget = *context_.state().budget;
  Stages stages(context, "add");
  for (std::size_t begin = 0; begin < count; begin += added_batch_rows) {
    const std::size_t size = std::min(added_batch_rows, count - begin);
    const Reservation residual_bytes(budget, size * (rows_.dim() * sizeof(float) + code_bytes + sizeof(Id)));
    Matrix<float> residuals(size, rows_.dim());
    std::vector<Id> lists(size);
    for (std::size_t i = 0; i < size; ++i) lists[i] = nearest_[first + begin + i];
    quantize::subtract_centroids(context_, rows_.slice(first + begin, size), state_.centroids, lists,
                                 state_.metric, residuals.view());
    state_.codec->encode(stages.next(static_cast<double>(size), static_cast<double>(count - begin - size)),
                         residuals, {codes + begin * code_bytes, size, code_bytes});
  }
  stages.finish();
}

void Addition::reserve(Id next_id) {
  more_.assign(state_.rows.lists(), 0);
  for (const std::uint32_t list : nearest_.span()) ++more_[list];
  state_.rows.reserve(more_);
  if (index::IdTable* const table = state_.table.load()) table->reserve(rows_.rows(), next_id);
}

bool Addition::append(std::size_t first, std::size_t count, std::span<const Id> ids,
                      const std::uint8_t* codes) {
  const bool flat = state_.is_flat();
  const std::size_t code_bytes = state_.rows.code_bytes();
  index::IdTable* const table = state_.table.load();
  std::byte* const scratch = scratch_.data();
  for (std::size_t row = first; row < first + count; ++row) {
    const std::uint32_t list = nearest_[row];
    const std::byte* const code =
        flat ? rows_.row(row) : reinterpret_cast<const std::byte*>(codes) + (row - first) * code_bytes;
    const std::byte* const vector = state_.rows.vector_bytes() == 0 ? nullptr
                                    : file_rows_.size() != 0
                                        ? reinterpret_cast<const std::byte*>(&file_rows_[row])
                                        : state_.vectors.encode(rows_, row, scratch);
    state_.list_changes(list);
    state_.rows.append(list, {code, &ids[row - first], 1, vector});
    if (table != nullptr) table->insert(ids[row - first], list);
  }
  // Flat lists and kept vectors have just been read once more.
  if (!pages_were_lost()) return true;
  for (std::size_t row = first; row < first + count; ++row) {
    state_.rows.shrink(nearest_[row], 1);
    if (table != nullptr) table->erase(ids[row - first]);
  }
  return false;
}

}  // namespace ivf

namespace {

// By upper bounds: which ids the index holds, and which lists become longer, is not known yet.
void check_adding(const char* operation, const Context& context, const IvfInternals::State& state,
                  const RowsView& rows, std::span<const Id> ids, OnDuplicate on_duplicate) {
  if (!is_limited(context, *state.budget)) return;
  const std::size_t count = rows.rows();
  std::uint64_t needed = ivf::adding_bytes(context, rows,
                                           {.lists = state.rows.lists(),
                                            .dim = rows.dim(),
                                            .code_bytes = state.rows.code_bytes(),
                                            .encode_bytes = state.codec->encode_bytes(context),
                                            .is_flat = state.is_flat()});
  if (state.vectors.storage == VectorStorage::file) needed += count * sizeof(std::uint32_t);
  std::uint64_t kept = state.rows.most_reserved_bytes(count);
  const Id room = std::numeric_limits<Id>::max() - state.next_id;
  const Id next_id = ids.empty() ? state.next_id + std::min(room, static_cast<Id>(count))
                                 : std::max(state.next_id, std::ranges::max(ids) + 1);
  const bool may_be_known = !ids.empty() && std::ranges::min(ids) < state.next_id;
  if (may_be_known || state.table.load() != nullptr) kept += ivf::table_bytes(state, count, next_id);
  if (may_be_known && on_duplicate == OnDuplicate::replace) {
    needed += ivf::Removal::bytes(state, count);
    kept += ivf::Removal::kept_bytes(state, count);
  }
  if (may_be_known && on_duplicate == OnDuplicate::keep) needed += buffer_bytes(count, row_bytes_of(rows));
  check_memory(operation, context, *state.budget, kept, kept + needed);
}

}  // namespace

std::size_t Ivf::add(const Context& context, RowsView rows, std::span<const Id> ids,
                     OnDuplicate on_duplicate) {
  return add_all("Ivf.add", context, rows, ids, on_duplicate, Missing::add);
}

void Ivf::update(const Context& context, std::span<const Id> ids, RowsView rows) {
  constexpr const char* operation = "Ivf.update";
  // To add_all(), no ids mean consecutive numbers.
  require(ids.size() == rows.rows(), "{}: there must be one id per row, got {} for {} rows", operation,
          ids.size(), rows.rows());
  add_all(operation, context, rows, ids, OnDuplicate::replace, Missing::refuse);
}

std::size_t Ivf::add_all(const char* operation, const Context& context, RowsView rows,
                         std::span<const Id> ids, OnDuplicate on_duplicate, Missing missing) {
  State& state = *state_;
  check_rows(operation, context, rows, state.centroids, {"vectors", "index"});
  require(rows.place().kind == DeviceKind::cpu, "{}: rows must be on the host, got rows on {}", operation,
          name(rows.place()));
  require(!state.is_flat() || rows.type() == state.codec->view().type,
          "{}: rows must have the element type of the training, {}, got {}", operation,
          name(state.codec->view().type), name(rows.type()));
  index::check_ids(operation, rows.rows(), ids);
  index::IndexLock::Changing changing(state.lock, &context.state().cancel);
  require(rows.rows() <= max_shard_rows - size(),
          "{}: an index holds at most {} vectors, got {} more than {}", operation, max_shard_rows,
          rows.rows(), size());
  if (rows.rows() == 0) return 0;
  check_adding(operation, context, state, rows, ids, on_duplicate);
  const DefaultFloatEnvironment environment;
  MemoryBudget& budget = *context.state().budget;
  const bool are_consecutive = ids.empty();
  const index::GivenRows given(operation, budget, rows, ids, state.next_id,
                               {.on_duplicate = on_duplicate, .must_exist = missing == Missing::refuse},
                               [&](Id id) { return state.ids().find(id).has_value(); });
  if (given.rows().rows() == 0) return 0;
  rows = given.rows();
  ids = given.ids();
  if (state.is_flat())
    check_finite(operation, context, rows);
  else
    check_coded_range(operation, context, rows, max_indexed_value);
  if (state.rows.vector_bytes() != 0) state.vectors.check(operation, context, rows);
  Buffer<std::uint32_t> file_rows;
  if (vectors() == VectorStorage::file)
    file_rows = state.vectors.rows_in_file(
        operation, budget, rows, are_consecutive ? std::span<const Id>() : ids, state.next_file_row);
  // Everything that can fail comes before the first vector is appended.
  ivf::Addition addition(state, context, rows, std::move(file_rows));
  Stages stages(context, "add");
  addition.assign(stages.next(addition.assign_cost(), addition.encode_cost()));
  Buffer<std::uint8_t> codes(budget, state.is_flat() ? 0 : rows.rows() * state.rows.code_bytes());
  addition.encode(stages.next(1, 0), 0, rows.rows(), codes.data());
  const std::uint64_t next_file_row = addition.next_file_row(state.next_file_row);
  ivf::Removal removal(state, context, given.replaced());
  bool is_whole = false;
  {
    const index::IndexLock::Writing writing(changing, &context.state().cancel);
    removal.own_lists();
    addition.reserve(given.next_id());
    const NoFork whole;
    // First the new entries: if a mapped file turns out to be truncated, they are taken back.
    removal.hide();
    is_whole = addition.append(0, rows.rows(), ids, codes.data());
    if (is_whole) {
      removal.commit();
      state.next_id = given.next_id();
      state.next_file_row = next_file_row;
      state.publish();
    } else {
      removal.show();
    }
  }
  if (!is_whole) check_lost_pages();
  stages.finish();
  return rows.rows();
}

}  // namespace nearwise

// Graph indexes: adding vectors. A batch is searched for in the graph as it is, pruned, and linked both ways.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "backend/stages.h"
#include "core/checked.h"
#include "core/convert.h"
#include "core/float_environment.h"
#include "core/fork.h"
#include "core/lost_pages.h"
#include "graph_index/edges/build_edges.h"
#include "graph_index/graph_build.h"
#include "graph_index/memory_needs.h"
#include "graph_index/search_graph.h"
#include "graph_index/update/compact_graph.h"
#include "graph_index/update/graph_change.h"
#include "graph_index/update/insert_edges.h"
#include "index/given_rows.h"
#include "ops/check_rows.h"
#include "ops/finite_rows.h"
#include "ops/gather_rows.h"
#include "ops/memory_limit.h"

namespace nearwise {
namespace graph_index {
namespace {

using State = GraphIndexInternals::State;

// Rows of a batch: a share of the graph, as searches do not find other rows of the batch.
constexpr std::size_t min_batch_rows = 1024;
constexpr std::size_t max_batch_rows = 32768;
constexpr std::size_t batch_share = 4;
// Rows that were pruned off are connected again when this share of the rows is new.
constexpr std::size_t connected_share = 8;
// Below this, the graph is built anew whenever the index doubles: its codes were trained on few vectors.
constexpr std::size_t small_rows = 8192;

std::size_t batch_rows(std::size_t size, std::size_t left) {
  return std::min({left, std::max(min_batch_rows, size / batch_share), max_batch_rows});
}

// Whether the codec encodes these rows as well as those it was trained on. Exact codes are the vectors. For
// inner_product the longest vectors are the results of most queries, so their codes must tell them apart.
bool fits_codec(const Context& context, const ScalarCodec& codec, const RowsView& rows) {
  constexpr double longer_norm = 1.1;  // about 5 % longer than all vectors before
  const bool is_product = codec.metric == Metric::inner_product;
  if (!codec.is_exact() && !is_product) return true;
  constexpr std::size_t part = 1024;
  std::atomic<bool> fits = true;
  context.state().threads->for_each(divide_up(rows.rows(), part), [&](std::size_t task) {
    context.state().cancel.check();
    std::vector<double> row(rows.dim());
    for (std::size_t r = task * part; r < std::min(rows.rows(), (task + 1) * part); ++r) {
      row_to_double(rows, r, row.data());
      double norm = 0;
      for (std::size_t d = 0; d < rows.dim(); ++d) {
        norm += row[d] * row[d];
        const double code = row[d] - static_cast<double>(codec.offsets[d]);
        if (!is_product && !(code >= 0 && code <= 255 && code == std::floor(code))) fits = false;
      }
      if (is_product && norm > longer_norm * codec.max_norm) fits = false;
    }
  });
  return fits;
}

// Of the table of ids, in addition to the one there is.
std::uint64_t table_bytes(const State& state, std::size_t added, Id next_id) {
  if (state.table) return state.table->reserved_bytes(added, next_id);
  return index::IdTable::bytes(state.graph.live_count() + added, next_id) + 2 * buffer_bytes(0, 1);
}

// Of a new graph of all vectors, in addition to the one there is.
std::uint64_t rebuilding_bytes(const Context& context, const State& state, std::size_t all) {
  const std::size_t row_bytes = state.dim * element_size(state.type);
  const RowsView vectors(nullptr, state.type, all, state.dim, row_bytes);
  constexpr Id some_id = 0;  // that there are ids
  return buffer_bytes(all, sizeof(std::uint32_t) + sizeof(Id) + row_bytes) + 2 * buffer_bytes(0, 1) +
         building_bytes(context, vectors,
                        {.metric = state.metric, .degree = state.degree, .ids = std::span(&some_id, 1)}, {});
}

// Copies of what is given come first: where they do not fit, a limit is named that suffices for all,
// whichever vectors take the place of others.
void check_given(const char* operation, const Context& context, const State& state, const RowsView& rows,
                 bool has_ids, Id next_id) {
  const MemoryBudget& budget = *context.state().budget;
  const std::uint64_t copies = buffer_bytes(rows.rows(), 2 * sizeof(Id)) + buffer_bytes(0, 1) +
                               (has_ids ? buffer_bytes(rows.rows(), row_bytes_of(rows)) : 0);
  if (copies <= budget.available()) return;
  const GraphRows& before = state.graph.rows;
  const std::size_t count = before.count() + rows.rows();
  const std::size_t all = state.graph.live_count() + rows.rows();
  const std::uint64_t replacing =
      has_ids ? compacted_at_once * before.edges.cols() * before.edges.cols() * sizeof(std::uint32_t) : 0;
  const std::uint64_t inserting =
      table_bytes(state, rows.rows(), next_id) + capacity_bytes(before, count) + capacity_bytes(before, all) +
      replacing +
      std::max({inserting_bytes(context, before, count, batch_rows(all, rows.rows())),
                compacting_bytes(context, before, state.graph.live_bits(), rows.rows()),
                connecting_bytes(context, before, count)});
  refuse_limit(operation, budget.limit(),
               budget.used() + copies + std::max(inserting, rebuilding_bytes(context, state, all)));
}

// What add() and update() do, after the checks of arguments.
class GraphAddition {
 public:
  GraphAddition(State& state, index::IndexLock::Changing& changing, const Context& context,
                const index::GivenRows& given)
      : state_(state),
        graph_(state.graph),
        changing_(changing),
        context_(context),
        given_(given),
        added_(given.rows().rows()),
        kept_(state.graph.live_count() - given.replaced().size()),
        passes_power_of_two_(std::bit_width(kept_ + added_) > std::bit_width(state.graph.live_count())),
        beam_(std::min(std::max(2 * state.degree, state.defaults.beam),
                       std::max<std::size_t>(state.graph.rows.count(), 1))) {
    for (const Id id : given.replaced()) replaced_.push_back(static_cast<std::uint32_t>(*state.find(id)));
  }

  void run(const char* operation) {
    Stages stages(context_, "add");
    const bool doubles = added_ > kept_ || (kept_ < small_rows && passes_power_of_two_);
    const bool rebuilds = doubles || !fits_codec(context_, *graph_.rows.codec, given_.rows());
    check(operation, rebuilds);
    if (rebuilds) {
      const auto rows = static_cast<double>(kept_ + added_);
      SearchedGraph fresh = rebuilt(operation, stages.next(rows, calibration_cost()));
      const std::optional<GraphCalibration> calibration = recalibrated(stages, fresh);
      check_lost_pages();
      replace_graph(state_, changing_, cancel(), fresh, given_.next_id(), calibration);
    } else {
      insert(stages);
    }
    stages.finish();
  }

 private:
  const CancelFlag& cancel() const { return context_.state().cancel; }

  std::shared_ptr<const AllowedRows> live_rows() const {
    std::vector<std::uint64_t> words = graph_.live_words(replaced_, added_);
    return words.empty() ? nullptr : allowed_of(std::move(words));
  }

  // A larger index needs a wider beam for the same recall.
  bool calibrates() const { return passes_power_of_two_ && state_.calibration; }
  // Time of a calibration, in that of adding a row.
  double calibration_cost() const {
    constexpr double trials = 5000;
    constexpr double rows_per_scanned_row = 1.0 / 500;
    return calibrates() ? trials + rows_per_scanned_row * static_cast<double>(kept_ + added_) : 0;
  }
  // None if the calibration stays: it may be that of queries, which are not known here.
  std::optional<GraphCalibration> recalibrated(Stages& stages, const SearchedGraph& graph) const {
    if (!calibrates() || graph.live_count() < 2) return {};
    try {
      GraphCalibration found = calibrate_graph(stages.next(calibration_cost(), 0), graph,
                                               {.target_recall = state_.calibration->target_recall});
      const GraphDefaults& kept = state_.defaults;
      if (found.beam <= kept.beam && found.beam_of_100 <= kept.beam_of_100 &&
          found.evaluates_beam <= kept.evaluates_beam) {
        return {};
      }
      found.beam = std::max(found.beam, kept.beam);
      found.beam_of_100 = std::max(found.beam_of_100, kept.beam_of_100);
      found.evaluates_beam = found.evaluates_beam || kept.evaluates_beam;
      return found;
    } catch (const Error& error) {
      // Vectors are added all the same.
      if (error.code() != ErrorCode::out_of_memory) throw;
      return {};
    }
  }

  // A new graph of all vectors.
  SearchedGraph rebuilt(const char* operation, const Context& context) const {
    MemoryBudget& budget = *context.state().budget;
    const std::shared_ptr<const AllowedRows> live = live_rows();
    Buffer<std::uint32_t> rows(budget, kept_);
    Buffer<Id> ids(budget, kept_ + added_);
    std::size_t next = 0;
    for (std::uint32_t row = 0; row < graph_.rows.count(); ++row) {
      if (live && !live->bits().contains(row)) continue;
      ids[next] = graph_.rows.id_of(row);
      rows[next++] = row;
    }
    std::ranges::copy(given_.ids(), ids.data() + kept_);
    const std::size_t bytes = row_bytes_of(given_.rows());
    Buffer<std::byte> vectors(budget, checked_multiply(kept_ + added_, bytes, "bytes of vectors"));
    gather_rows(context, graph_.rows.vectors, rows.span(), vectors.data());
    gather_rows(
        context, given_.rows(), added_,
        [](std::size_t row) {
          return PlacedRow{row, row};
        },
        vectors.data() + kept_ * bytes);
    return build_graph(operation, context, state_.budget,
                       RowsView(vectors.data(), state_.type, kept_ + added_, state_.dim, bytes),
                       {.metric = state_.metric, .degree = state_.degree, .ids = ids.span()});
  }

  // What the change keeps, and all that it needs, by upper bounds.
  void check(const char* operation, bool rebuilds) const {
    if (!is_limited(context_, *state_.budget)) return;
    const GraphRows& rows = graph_.rows;
    const std::size_t all = kept_ + added_;
    if (rebuilds) {
      check_memory(operation, context_, *state_.budget, capacity_bytes(rows, all),
                   rebuilding_bytes(context_, state_, all));
      return;
    }
    const std::size_t count = rows.count() + added_;
    std::uint64_t kept = table_bytes(state_, added_, given_.next_id());
    std::uint64_t working = inserting_bytes(context_, rows, count, batch_rows(all, added_));
    // Where there is room, a copy is made only if there is memory for it.
    if (!fits_in_place()) {
      kept += capacity_bytes(rows, count);
      if (will_compact()) {
        const std::shared_ptr<const AllowedRows> live = live_rows();
        kept += capacity_bytes(rows, all);
        working = std::max(working, compacting_bytes(context_, rows, live->bits(), added_));
      } else if (will_connect()) {
        working = std::max(working, connecting_bytes(context_, rows, count));
      }
    }
    check_memory(operation, context_, *state_.budget, kept, kept + working);
  }

  bool will_compact() const { return has_many_removed(kept_ + added_, graph_.rows.count() + added_); }
  bool will_connect() const {
    return connected_share * (state_.unconnected + added_) >= kept_ + added_ ||
           graph_.entries.view().rows.size() > 2 * max_leaves;
  }
  bool fits_in_place() const { return batch_rows(kept_, added_) == added_ && graph_.rows.has_room(added_); }

  void insert(Stages& stages) {
    if (!fits_in_place() || will_compact() || will_connect() || calibrates()) try {
        insert_into_copy(stages, will_compact(), will_connect());
        return;
      } catch (const Error& error) {
        // Without memory for a copy, vectors that the spare memory has room for are added all the same.
        if (error.code() != ErrorCode::out_of_memory || !fits_in_place()) throw;
      }
    insert_in_place(stages.next(1, 0));
  }

  void insert_into_copy(Stages& stages, bool compacts, bool connects) {
    const double finishing_cost = compacts || connects ? static_cast<double>(kept_ + added_) / 2 : 0;
    SearchedGraph draft = copy_with_rows(stages, finishing_cost + calibration_cost());
    const Context context = stages.next(finishing_cost, calibration_cost());
    if (compacts) {
      SearchedGraph fresh = compacted(context, state_.budget, draft, draft.live_bits());
      draft = {};
      const std::optional<GraphCalibration> calibration = recalibrated(stages, fresh);
      check_lost_pages();
      replace_graph(state_, changing_, cancel(), fresh, given_.next_id(), calibration);
      return;
    }
    if (connects) connect(context, draft);
    draft.prepare(context, state_.budget);
    const std::optional<GraphCalibration> calibration = recalibrated(stages, draft);
    IdChange ids(state_, given_.replaced(), given_.ids(), given_.next_id());
    check_lost_pages();
    const index::IndexLock::Writing writing(changing_, &cancel());
    const NoFork whole;
    ids.reserve();
    ids.commit();
    std::swap(graph_, draft);
    if (calibration) state_.set_calibration(*calibration);
    finish(connects ? 0 : state_.unconnected + added_);
  }

  // Computes everything aside, behind the rows that readers see.
  void insert_in_place(const Context& context) {
    const std::size_t before = graph_.rows.count();
    const std::size_t after = before + added_;
    std::shared_ptr<const AllowedRows> live = live_rows();
    graph_.rows.write_behind(context, given_.rows());
    std::ranges::copy(given_.ids(), graph_.rows.own_ids.data() + before);
    const GraphRowViews views = graph_.rows.own_views(after);
    const InsertedEdges inserted = insert_edges(context, graph_, new_rows(views, given_.rows(), live));
    std::optional<EntryTree> entries;
    if (!inserted.entries.empty()) entries = graph_.entries.with_leaves(views.codes, inserted.entries);
    auto prepared = std::make_unique<const PreparedGraphs>(
        context, graph_.view_of(views, entries ? *entries : graph_.entries), state_.budget);
    const std::uint64_t key = FilterInternals::new_key();
    IdChange ids(state_, given_.replaced(), given_.ids(), given_.next_id());
    check_lost_pages();
    const index::IndexLock::Writing writing(changing_, &cancel());
    const NoFork whole;
    ids.reserve();
    ids.commit();
    graph_.rows.set_count(after);
    inserted.write_to(graph_.rows.writable_edges());
    if (entries) std::swap(graph_.entries, *entries);
    std::swap(graph_.live, live);
    std::swap(graph_.prepared, prepared);
    graph_.filter_key = key;
    finish(state_.unconnected + added_);
  }

  // A copy of the graph with the new rows, batch after batch. later_cost: of what is done with it afterwards.
  SearchedGraph copy_with_rows(Stages& stages, double later_cost) const {
    const std::size_t before = graph_.rows.count();
    SearchedGraph draft;
    try {
      draft.rows = graph_.rows.copy(context_, *state_.budget, std::max(before + added_, before + before / 2));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory || added_ >= before / 2) throw;
      draft.rows = graph_.rows.copy(context_, *state_.budget, before + added_);
    }
    draft.entries = graph_.entries.with_leaves(graph_.rows.codes, {});
    draft.live = live_rows();
    for (std::size_t first = 0; first < added_;) {
      const std::size_t count = batch_rows(kept_ + first, added_ - first);
      const RowsView batch = given_.rows().slice(first, count);
      const Context context =
          stages.next(static_cast<double>(count), static_cast<double>(added_ - first - count) + later_cost);
      draft.prepare(context, context.state().budget);
      draft.rows.write_behind(context, batch);
      std::ranges::copy(given_.ids().subspan(first, count), draft.rows.own_ids.data() + before + first);
      const GraphRowViews views = draft.rows.own_views(before + first + count);
      const InsertedEdges inserted = insert_edges(context, draft, new_rows(views, batch, draft.live));
      draft.rows.set_count(before + first + count);
      inserted.write_to(draft.rows.writable_edges());
      if (!inserted.entries.empty())
        draft.entries = draft.entries.with_leaves(draft.rows.codes, inserted.entries);
      first += count;
    }
    return draft;
  }

  NewRows new_rows(const GraphRowViews& views, const RowsView& vectors,
                   const std::shared_ptr<const AllowedRows>& live) const {
    return {.codes = views.codes, .vectors = vectors, .live = live ? live->bits() : RowBits(), .beam = beam_};
  }

  static void connect(const Context& context, SearchedGraph& draft) {
    const std::size_t code_dim = draft.rows.codec->code_dim();
    // A new tree has about as many leaves of a top as tops.
    const EntryTreeView tree = draft.entries.view();
    if (tree.rows.size() > 2 * max_leaves || tree.rows.size() > 4 * tree.ends.size() * tree.ends.size())
      draft.entries = EntryTree::train(context, draft.rows.codes, code_dim);
    connect_rows(context, draft.rows.codes, code_dim, draft.rows.writable_edges());
  }

  void finish(std::size_t unconnected) noexcept {
    state_.next_id = given_.next_id();
    state_.unconnected = unconnected;
    state_.publish();
  }

  State& state_;
  SearchedGraph& graph_;
  index::IndexLock::Changing& changing_;
  const Context& context_;
  const index::GivenRows& given_;
  const std::size_t added_;
  const std::size_t kept_;  // vectors that stay
  const bool passes_power_of_two_;
  const std::size_t beam_;
  std::vector<std::uint32_t> replaced_;  // rows
};

}  // namespace

IdChange::IdChange(State& state, std::span<const Id> removed, std::span<const Id> added, Id next_id)
    : state_(state),
      removed_(removed),
      added_(added),
      next_id_(next_id),
      first_row_(state.graph.rows.count()) {
  if (!state.table) table_.emplace(state.make_table(added.size(), next_id));
}

void IdChange::reserve() {
  if (state_.table) state_.table->reserve(added_.size(), next_id_);
}

void IdChange::commit() noexcept {
  if (table_) std::swap(state_.table, table_);
  for (const Id id : removed_) state_.table->erase(id);
  for (std::size_t i = 0; i < added_.size(); ++i)
    state_.table->insert(added_[i], static_cast<std::uint32_t>(first_row_ + i));
}

}  // namespace graph_index

std::size_t GraphIndex::add(const Context& context, RowsView rows, std::span<const Id> ids,
                            OnDuplicate on_duplicate) {
  return add_all("GraphIndex.add", context, rows, ids, on_duplicate, false);
}

void GraphIndex::update(const Context& context, std::span<const Id> ids, RowsView rows) {
  constexpr const char* operation = "GraphIndex.update";
  // To add_all(), no ids mean consecutive numbers.
  require(ids.size() == rows.rows(), "{}: there must be one id per row, got {} for {} rows", operation,
          ids.size(), rows.rows());
  add_all(operation, context, rows, ids, OnDuplicate::replace, true);
}

std::size_t GraphIndex::add_all(const char* operation, const Context& context, const RowsView& rows,
                                std::span<const Id> ids, OnDuplicate on_duplicate, bool must_exist) {
  State& state = *state_;
  check_rows(operation, context, rows, state.shape(), {"vectors", "index"});
  require(rows.place().kind == DeviceKind::cpu, "{}: rows must be on the host, got rows on {}", operation,
          name(rows.place()));
  require(rows.type() == state.type, "{}: rows must have the element type of the index, {}, got {}",
          operation, name(state.type), name(rows.type()));
  index::check_ids(operation, rows.rows(), ids);
  context.state().cancel.check();
  index::IndexLock::Changing changing(state.lock, &context.state().cancel);
  const std::size_t before = state.graph.rows.count();
  require(rows.rows() <= graph_index::max_graph_rows - before,
          "{}: an index holds at most {} vectors, got {} more than {}", operation,
          graph_index::max_graph_rows, rows.rows(), before);
  if (rows.rows() == 0) return 0;
  const DefaultFloatEnvironment environment;
  check_mapped(state.graph.rows.vectors);
  const Id room = std::numeric_limits<Id>::max() - state.next_id;
  graph_index::check_given(operation, context, state, rows, !ids.empty(),
                           ids.empty() ? state.next_id + std::min(room, static_cast<Id>(rows.rows()))
                                       : std::max(state.next_id, std::ranges::max(ids) + 1));
  const index::GivenRows given(operation, *context.state().budget, rows, ids, state.next_id,
                               {.on_duplicate = on_duplicate, .must_exist = must_exist},
                               [&](Id id) { return state.find(id).has_value(); });
  if (given.rows().rows() == 0) return 0;
  check_finite(operation, context, given.rows());
  graph_index::GraphAddition(state, changing, context, given).run(operation);
  return given.rows().rows();
}

}  // namespace nearwise

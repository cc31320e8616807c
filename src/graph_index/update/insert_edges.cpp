// Edges of new rows. Searches and pruning run on all threads and give the same for any number of them; the
// rest is serial, in ascending order of rows.
#include "graph_index/update/insert_edges.h"

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "backend/context_state.h"
#include "backend/dispatch.h"
#include "graph_index/search_graph.h"
#include "nearwise/exact.h"

namespace nearwise::graph_index {
namespace {

// Neighbours of a new row: in the graph [new rows, k], and among the new rows [new rows, fewer].
struct NewNeighbors {
  Matrix<Id> in_graph = {};
  Matrix<Id> new_rows = {};
  // The row of the graph that leads to a new row if no other does; no_id: none was found.
  std::vector<Id> leading = {};
  Reservation memory = {};
};

// The nearest row of the graph whose list has room, else the nearest one. Among equal rows, which hardly have
// edges to each other, the lists of the first ones become full.
Id leading_row(const SearchedGraph& graph, std::span<const Id> found) {
  for (const Id row : found)
    if (row != no_id && graph.rows.edges.row(static_cast<std::size_t>(row)).back() == no_edge) return row;
  return found.front();
}

NewNeighbors find_neighbors(const Context& context, const SearchedGraph& graph, const NewRows& added) {
  const std::size_t degree = graph.rows.edges.cols();
  const std::size_t before = graph.rows.count();
  const std::size_t count = added.vectors.rows();
  NewNeighbors found;
  const std::size_t near = std::min(degree / 2, count - 1);
  found.memory = Reservation(*context.state().budget, count * (degree + near + 1) * sizeof(Id));
  found.in_graph =
      search_rows(context, graph, added.vectors, {.k = degree, .beam = {added.beam}, .allowed = added.live})
          .ids;
  if (near != 0) {
    const MatrixView<const std::uint8_t> codes = added.codes.slice(before, count);
    found.new_rows =
        exact_knn_graph(
            context.without_progress(),
            RowsView(codes.data(), ElementType::u8, count, graph.rows.codec->code_dim(), codes.cols()), near)
            .ids;
  }
  for (std::size_t i = 0; i < count; ++i) found.leading.push_back(leading_row(graph, found.in_graph.row(i)));
  return found;
}

// Pruned lists of the new rows [new rows, degree].
Buffer<std::int32_t> own_lists(const Context& context, const SearchedGraph& graph, const NewRows& added,
                               const NewNeighbors& found) {
  MemoryBudget& budget = *context.state().budget;
  const std::size_t degree = graph.rows.edges.cols();
  const std::size_t before = graph.rows.count();
  const std::size_t count = added.vectors.rows();
  const std::size_t width = found.in_graph.cols() + found.new_rows.cols();
  Buffer<std::int32_t> candidates(budget, count * width);
  Buffer<std::uint32_t> rows(budget, count);
  for (std::size_t i = 0; i < count; ++i) {
    rows[i] = static_cast<std::uint32_t>(before + i);
    std::int32_t* next = candidates.data() + i * width;
    for (const Id row : found.in_graph.row(i))
      if (row != no_id) *next++ = static_cast<std::int32_t>(row);
    if (found.new_rows.cols() != 0)
      for (const Id row : found.new_rows.row(i))
        *next++ = static_cast<std::int32_t>(before + static_cast<std::size_t>(row));
    std::fill(next, candidates.data() + (i + 1) * width, no_edge);
  }
  Buffer<std::int32_t> lists(budget, count * degree);
  const auto stream = open_stream(context);
  dispatch(&Ops::prune_edges, "prune_edges", *stream,
           PruneEdgesArgs{.codes = added.codes,
                          .rows = rows.span(),
                          .lists = {candidates.data(), count, width},
                          .edges = {lists.data(), count, degree}});
  return lists;
}

// A new edge in the opposite direction, in the order of targets: target << 32 | source.
Buffer<std::uint64_t> reversed(const Context& context, const SearchedGraph& graph, const NewNeighbors& found,
                               const Buffer<std::int32_t>& lists, std::size_t& edges) {
  const std::size_t degree = graph.rows.edges.cols();
  const std::size_t count = lists.size() / degree;
  Buffer<std::uint64_t> pairs(*context.state().budget, count * (degree + 1));
  edges = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t source = graph.rows.count() + i;
    for (std::size_t place = i * degree; place < (i + 1) * degree && lists[place] != no_edge; ++place)
      pairs[edges++] = static_cast<std::uint64_t>(lists[place]) << 32U | source;
    if (found.leading[i] != no_id)
      pairs[edges++] = static_cast<std::uint64_t>(found.leading[i]) << 32U | source;
  }
  std::sort(pairs.data(), pairs.data() + edges);
  edges = static_cast<std::size_t>(std::unique(pairs.data(), pairs.data() + edges) - pairs.data());
  return pairs;
}

// Adds edges to new rows that none leads to, one after the other.
class NewRowReach {
 public:
  NewRowReach(const Context& context, std::size_t before, std::size_t degree, InsertedEdges& inserted)
      : before_(before),
        degree_(degree),
        inserted_(inserted),
        old_(static_cast<std::size_t>(
            std::ranges::lower_bound(inserted.rows.span(), static_cast<std::uint32_t>(before)) -
            inserted.rows.span().begin())),
        is_reached_(*context.state().budget, inserted.rows.size() - old_) {
    std::fill_n(is_reached_.data(), is_reached_.size(), std::uint8_t{0});
  }

  // leading: a row of the graph for each new row, or no_id.
  void repair(std::span<const Id> leading) {
    for (std::size_t place = 0; place < old_; ++place) follow(place);
    follow_marked();
    std::map<Id, std::size_t> last;  // new row that was led to from a row of the graph
    for (std::size_t i = 0; i < is_reached_.size(); ++i) {
      if (is_reached_[i] != 0) continue;
      const auto before = last.find(leading[i]);
      // Many rows with one leading row, as equal ones have, make a chain.
      if (!(before != last.end() && append(list(old_ + before->second), i)) && !lead(leading[i], i))
        inserted_.entries.push_back(static_cast<std::uint32_t>(before_ + i));
      last[leading[i]] = i;
      mark(i);
      follow_marked();
    }
    std::ranges::sort(inserted_.entries);
    // Not std::ranges::unique, whose result clang 14 cannot compile.
    const auto repeated = std::unique(inserted_.entries.begin(), inserted_.entries.end());
    inserted_.entries.erase(repeated, inserted_.entries.end());
  }

 private:
  std::span<std::int32_t> list(std::size_t place) {
    return inserted_.lists.span().subspan(place * degree_, degree_);
  }
  void mark(std::size_t i) {
    if (is_reached_[i] != 0) return;
    is_reached_[i] = 1;
    marked_.push_back(i);
  }
  // Marks the new rows of a list.
  void follow(std::size_t place) {
    for (const std::int32_t target : list(place)) {
      if (target == no_edge) break;
      if (static_cast<std::size_t>(target) >= before_) mark(static_cast<std::size_t>(target) - before_);
    }
  }
  void follow_marked() {
    while (!marked_.empty()) {
      const std::size_t i = marked_.back();
      marked_.pop_back();
      follow(old_ + i);
    }
  }
  // An edge at the end of a list, if it has room.
  bool append(std::span<std::int32_t> edges, std::size_t to) {
    const auto room = std::ranges::find(edges, no_edge);
    if (room == edges.end()) return false;
    *room = static_cast<std::int32_t>(before_ + to);
    return true;
  }
  // An edge from a row of the graph; if its list is full, in place of a far one to another row of the graph.
  bool lead(Id from, std::size_t to) {
    if (from == no_id) return false;
    const std::span<std::uint32_t> rows = inserted_.rows.span().first(old_);
    const auto found = std::ranges::lower_bound(rows, static_cast<std::uint32_t>(from));
    const std::span<std::int32_t> edges = list(static_cast<std::size_t>(found - rows.begin()));
    if (append(edges, to)) return true;
    const std::span<std::int32_t> far = edges.last(degree_ / 4);
    const auto last = std::find_if(far.rbegin(), far.rend(), [&](std::int32_t target) {
      return static_cast<std::size_t>(target) < before_;
    });
    if (last == far.rend()) return false;
    *last = static_cast<std::int32_t>(before_ + to);
    return true;
  }

  const std::size_t before_;
  const std::size_t degree_;
  InsertedEdges& inserted_;
  const std::size_t old_;  // of the rows whose lists change, those of the graph
  Buffer<std::uint8_t> is_reached_;
  std::vector<std::size_t> marked_;
};

}  // namespace

void InsertedEdges::write_to(MatrixView<std::int32_t> edges) const noexcept {
  for (std::size_t place = 0; place < rows.size(); ++place)
    std::copy_n(lists.data() + place * edges.cols(), edges.cols(), edges.row(rows[place]).data());
}

InsertedEdges insert_edges(const Context& context, const SearchedGraph& graph, const NewRows& added) {
  MemoryBudget& budget = *context.state().budget;
  const std::size_t degree = graph.rows.edges.cols();
  const std::size_t before = graph.rows.count();
  const std::size_t count = added.vectors.rows();
  const NewNeighbors found = find_neighbors(context, graph, added);
  Buffer<std::int32_t> own = own_lists(context, graph, added, found);
  std::size_t edges = 0;
  const Buffer<std::uint64_t> pairs = reversed(context, graph, found, own, edges);
  context.state().cancel.check();

  // Lists of all targets in the graph, and of all new rows, with the sources of new edges as candidates.
  std::size_t targets = 0;
  for (std::size_t i = 0; i < edges && pairs[i] >> 32U < before; ++i)
    targets += i == 0 || pairs[i] >> 32U != pairs[i - 1] >> 32U ? 1 : 0;
  InsertedEdges inserted{Buffer<std::uint32_t>(budget, targets + count),
                         Buffer<std::int32_t>(budget, (targets + count) * degree),
                         {}};
  Buffer<std::uint64_t> offsets(budget, targets + count + 1);
  Buffer<std::uint32_t> sources(budget, edges);
  for (std::size_t i = 0; i < edges; ++i) sources[i] = static_cast<std::uint32_t>(pairs[i]);
  offsets[0] = 0;
  std::size_t next = 0;
  for (std::size_t place = 0; place < targets + count; ++place) {
    const std::size_t row = place < targets ? pairs[next] >> 32U : before + place - targets;
    while (next < edges && pairs[next] >> 32U == row) ++next;
    offsets[place + 1] = next;
    inserted.rows[place] = static_cast<std::uint32_t>(row);
    const std::int32_t* const list =
        row < before ? graph.rows.edges.row(row).data() : own.data() + (row - before) * degree;
    std::copy_n(list, degree, inserted.lists.data() + place * degree);
  }
  own = {};
  const auto stream = open_stream(context);
  dispatch(&Ops::prune_edges, "prune_edges", *stream,
           PruneEdgesArgs{.codes = added.codes,
                          .rows = inserted.rows.span(),
                          .lists = {inserted.lists.data(), targets + count, degree},
                          .offsets = offsets.span(),
                          .others = sources.span(),
                          .keep_short_lists = true,
                          .edges = {inserted.lists.data(), targets + count, degree}});

  for (std::size_t row = before; row < before + count; ++row)
    if (row % rows_per_leaf == 0) inserted.entries.push_back(static_cast<std::uint32_t>(row));
  NewRowReach(context, before, degree, inserted).repair(found.leading);
  return inserted;
}

}  // namespace nearwise::graph_index

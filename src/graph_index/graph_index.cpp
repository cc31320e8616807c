#include "nearwise/graph_index.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/check.h"
#include "core/checked.h"
#include "core/convert.h"
#include "core/fork.h"
#include "core/lost_pages.h"
#include "graph_index/graph_index_state.h"

namespace nearwise {
namespace {

using Reading = index::IndexLock::Reading;
using Changing = index::IndexLock::Changing;
using Writing = index::IndexLock::Writing;

}  // namespace

Id GraphIndex::State::next_id_of(const graph_index::GraphRows& rows) {
  constexpr Id most = std::numeric_limits<Id>::max();
  if (rows.ids.empty()) return static_cast<Id>(rows.count());
  const Id largest = std::ranges::max(rows.ids);
  return largest == most ? most : largest + 1;
}

GraphIndex::State::State(std::shared_ptr<MemoryBudget> used_budget, graph_index::SearchedGraph made)
    : metric(made.rows.codec->metric),
      dim(made.rows.codec->dim),
      type(made.rows.vectors.type()),
      degree(made.rows.edges.cols()),
      budget(std::move(used_budget)),
      graph(std::move(made)),
      next_id(next_id_of(graph.rows)) {}

std::optional<std::size_t> GraphIndex::State::find(Id id) const {
  if (table) return table->find(id);
  const std::span<const Id> ids = graph.rows.ids;
  auto row = static_cast<std::size_t>(id);
  if (ids.empty()) {
    if (id < 0 || row >= graph.rows.count()) return {};
  } else {
    const auto found = std::ranges::lower_bound(ids, id);
    if (found == ids.end() || *found != id) return {};
    row = static_cast<std::size_t>(found - ids.begin());
  }
  if (!graph.is_live(row)) return {};
  return row;
}

index::IdTable GraphIndex::State::make_table(std::size_t more, Id following_id,
                                             const std::string& source) const {
  index::IdTable made(budget);
  made.reserve(graph.live_count() + more, following_id);
  for (std::size_t row = 0; row < graph.rows.count(); ++row) {
    if (!graph.is_live(row)) continue;
    if (!made.insert(graph.rows.id_of(row), static_cast<std::uint32_t>(row)))
      fail(ErrorCode::corrupt, "{}: ids, row {}: different ids expected, {} found twice", source, row,
           graph.rows.id_of(row));
  }
  return made;
}

GraphIndex::GraphIndex(std::unique_ptr<State> state) : state_(std::move(state)) { state_->publish(); }
GraphIndex::GraphIndex(GraphIndex&&) noexcept = default;
GraphIndex& GraphIndex::operator=(GraphIndex&&) noexcept = default;
GraphIndex::~GraphIndex() = default;

std::size_t GraphIndex::size() const { return state_->published_size; }
Id GraphIndex::next_id() const { return state_->published_next_id; }
bool GraphIndex::is_changing() const { return state_->lock.is_changing(); }
std::size_t GraphIndex::dim() const { return state_->dim; }
Metric GraphIndex::metric() const { return state_->metric; }
ElementType GraphIndex::element_type() const { return state_->type; }
std::size_t GraphIndex::degree() const { return state_->degree; }
std::size_t GraphIndex::entries() const {
  const Reading reading(state_->lock);
  return state_->graph.entries.view().rows.size();
}
std::size_t GraphIndex::bytes_per_vector() const {
  const Reading reading(state_->lock);
  const graph_index::GraphRows& rows = state_->graph.rows;
  return degree() * sizeof(std::int32_t) + (rows.are_codes_vectors() ? 0 : rows.codes.cols()) +
         rows.nibbles.cols();
}
MatrixView<const std::int32_t> GraphIndex::edges() const {
  const Reading reading(state_->lock);
  return state_->graph.rows.edges;
}

std::size_t graph_index::GraphDefaults::beam_for(std::size_t k, std::size_t rows) const {
  if (k <= calibration_neighbors) return std::max(k, beam);
  if (k <= many_neighbors) {
    // Between the two calibrated ones.
    const std::size_t more = beam_of_100 - std::min(beam, beam_of_100);
    return std::max(
        k, beam + divide_up(more * (k - calibration_neighbors), many_neighbors - calibration_neighbors));
  }
  return k > rows ? k : std::max(k, beam_of_100 * k / many_neighbors);
}

std::optional<GraphCalibration> GraphIndex::calibration() const {
  const Reading reading(state_->lock);
  return state_->calibration;
}
std::size_t GraphIndex::beam(std::size_t k) const {
  const Reading reading(state_->lock);
  return state_->defaults.beam_for(k, size());
}
void GraphIndex::set_beam(std::size_t beam) {
  // What a file can hold.
  constexpr std::size_t most = graph_index::max_graph_rows - graph_index::many_neighbors;
  require(beam >= 1 && beam <= most, "GraphIndex.set_beam: beam must be 1 to {}, got {}", most, beam);
  Changing changing(state_->lock);
  const Writing writing(changing);
  const NoFork whole;
  state_->defaults = {.beam = beam, .beam_of_100 = beam + graph_index::many_neighbors};
  state_->calibration.reset();
}

bool GraphIndex::contains(Id id) const {
  const Reading reading(state_->lock);
  const LostPagesScope lost_pages;
  const bool found = state_->find(id).has_value();
  check_lost_pages();
  return found;
}

std::vector<Id> GraphIndex::ids() const {
  const Reading reading(state_->lock);
  const LostPagesScope lost_pages;
  const graph_index::SearchedGraph& graph = state_->graph;
  std::vector<Id> all;
  all.reserve(graph.live_count());
  for (std::size_t row = 0; row < graph.rows.count(); ++row)
    if (graph.is_live(row)) all.push_back(graph.rows.id_of(row));
  if (state_->table) std::ranges::sort(all);
  check_lost_pages();
  return all;
}

void GraphIndex::get(std::span<const Id> ids, MatrixView<float> out) const {
  require(out.rows() == ids.size() && out.cols() == dim(), "GraphIndex.get: out must be {} x {}, got {} x {}",
          ids.size(), dim(), out.rows(), out.cols());
  const Reading reading(state_->lock);
  const LostPagesScope lost_pages;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::optional<std::size_t> row = state_->find(ids[i]);
    require(row.has_value(), "GraphIndex.get: id {} is not in the index", ids[i]);
    visit_element_type(element_type(), [&](auto tag) {
      for (std::size_t d = 0; d < dim(); ++d)
        out(i, d) = element<decltype(tag)>(state_->graph.rows.vectors.row(*row), d);
    });
  }
  check_lost_pages();
}

std::map<std::string, std::string> GraphIndex::provenance() const {
  const Reading reading(state_->lock);
  return state_->provenance;
}
void GraphIndex::set_provenance(std::map<std::string, std::string> provenance) {
  Changing changing(state_->lock);
  const Writing writing(changing);
  const NoFork whole;
  state_->provenance = std::move(provenance);
}

}  // namespace nearwise

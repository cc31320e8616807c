#include "nearwise/graph_index.h"

#include <algorithm>
#include <utility>

#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/convert.h"
#include "core/filter.h"
#include "core/fork.h"
#include "core/lost_pages.h"
#include "search/graph_index_state.h"

namespace nearwise {
GraphIndex::GraphIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
GraphIndex::GraphIndex(GraphIndex&&) noexcept = default;
GraphIndex& GraphIndex::operator=(GraphIndex&&) noexcept = default;
GraphIndex::~GraphIndex() = default;

void GraphIndex::State::prepare(const Context& context) {
  filter_key = FilterInternals::new_key();
  const auto stream = open_stream(context);
  prepared = dispatch(&Ops::prepare_graph, "prepare_graph", *stream, PrepareGraphArgs{view(), budget});
}

std::optional<std::size_t> GraphIndex::State::find(Id id) const {
  if (ids.empty()) {
    if (id < 0 || static_cast<std::uint64_t>(id) >= rows()) return {};
    return static_cast<std::size_t>(id);
  }
  const auto found = std::ranges::lower_bound(ids, id);
  if (found == ids.end() || *found != id) return {};
  return static_cast<std::size_t>(found - ids.begin());
}

std::size_t GraphIndex::size() const { return state_->rows(); }
std::size_t GraphIndex::dim() const { return state_->codec.dim; }
Metric GraphIndex::metric() const { return state_->codec.metric; }
ElementType GraphIndex::element_type() const { return state_->vectors.type(); }
std::size_t GraphIndex::degree() const { return state_->edges.cols(); }
std::size_t GraphIndex::entries() const { return state_->entries.view().rows.size(); }
std::size_t GraphIndex::bytes_per_vector() const {
  return degree() * sizeof(std::int32_t) + (state_->keeps_vectors_as_codes() ? 0 : state_->codes.cols()) +
         state_->nibbles.cols();
}
MatrixView<const std::int32_t> GraphIndex::edges() const { return state_->edges; }

std::size_t search::GraphDefaults::beam_for(std::size_t k, std::size_t rows) const {
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
  const index::IndexLock::Reading reading(state_->lock);
  return state_->calibration;
}
std::size_t GraphIndex::beam(std::size_t k) const { return state_->current_defaults().beam_for(k, size()); }
void GraphIndex::set_beam(std::size_t beam) {
  require(beam >= 1, "GraphIndex.set_beam: beam must be at least 1, got 0");
  index::IndexLock::Changing changing(state_->lock);
  const index::IndexLock::Writing writing(changing);
  const NoFork whole;
  state_->defaults = {.beam = beam, .beam_of_100 = beam + search::many_neighbors};
  state_->calibration.reset();
}

bool GraphIndex::contains(Id id) const {
  const LostPagesScope lost_pages;
  return state_->find(id).has_value();
}

std::vector<Id> GraphIndex::ids() const {
  const LostPagesScope lost_pages;
  std::vector<Id> all(size());
  for (std::size_t row = 0; row < all.size(); ++row) all[row] = state_->id_of(row);
  check_lost_pages();
  return all;
}

void GraphIndex::get(std::span<const Id> ids, MatrixView<float> out) const {
  require(out.rows() == ids.size() && out.cols() == dim(), "GraphIndex.get: out must be {} x {}, got {} x {}",
          ids.size(), dim(), out.rows(), out.cols());
  const LostPagesScope lost_pages;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::optional<std::size_t> row = state_->find(ids[i]);
    require(row.has_value(), "GraphIndex.get: id {} is not in the index", ids[i]);
    visit_element_type(element_type(), [&](auto tag) {
      for (std::size_t d = 0; d < dim(); ++d)
        out(i, d) = element<decltype(tag)>(state_->vectors.row(*row), d);
    });
  }
  check_lost_pages();
}

std::map<std::string, std::string> GraphIndex::provenance() const {
  const index::IndexLock::Reading reading(state_->lock);
  return state_->provenance;
}
void GraphIndex::set_provenance(std::map<std::string, std::string> provenance) {
  index::IndexLock::Changing changing(state_->lock);
  const index::IndexLock::Writing writing(changing);
  const NoFork whole;
  state_->provenance = std::move(provenance);
}

}  // namespace nearwise

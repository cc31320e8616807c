// The plugin's side: functions of the library, defined as calls of the library that has loaded the plugin.
// One that is missing here is found when the plugin is linked.
#include "backend/plugin/library/base_calls.h"

#include <cstdlib>
#include <utility>

#include "backend/plugin/plugin.h"
#include "core/check.h"
#include "core/lost_pages.h"

namespace nearwise {
namespace {

const BaseFunctions* base = nullptr;

}  // namespace

void set_base_functions(const BaseFunctions& functions) { base = &functions; }

void assertion_failed(const char* expression, const char* file, int line) noexcept {
  base->assertion_failed(expression, file, line);
  std::abort();
}
void check_lost_pages() { base->check_lost_pages(); }
void CancelFlag::stop() {
  base->stop_cancelled();
  std::abort();
}
void refuse_row(RowsRole role, std::size_t row) {
  base->refuse_row(role, row);
  std::abort();
}
std::string format_bytes(std::uint64_t bytes) { return base->format_bytes(bytes); }
std::size_t element_size(ElementType type) { return base->element_size(type); }
std::string name(Place place) { return base->place_name(place); }
Place Context::place() const { return (this->*base->place)(); }
void ProgressMeter::add(std::uint64_t units) { (this->*base->add_progress)(units); }
void Threads::for_each(std::size_t tasks, const std::function<void(std::size_t)>& body) const {
  (this->*base->for_each)(tasks, body);
}

void MemoryBudget::take(std::uint64_t bytes) { (this->*base->take)(bytes); }
void MemoryBudget::give_back(std::uint64_t bytes) noexcept { (this->*base->give_back)(bytes); }
std::uint64_t MemoryBudget::available() const { return (this->*base->available)(); }
std::size_t buffer_bytes(std::size_t size, std::size_t element_bytes) {
  return base->buffer_bytes(size, element_bytes);
}
BufferMemory allocate_buffer(const MemoryBudget& budget, std::size_t bytes) {
  return base->allocate_buffer(budget, bytes);
}
void free_buffer(const BufferMemory& memory) noexcept { base->free_buffer(memory); }

ScoreBound::ScoreBound(Metric metric, Products products, std::size_t dim)
    : ScoreBound(base->score_bound(metric, products, dim)) {}
bool ScoreBound::holds_for(const Lengths& query, const Lengths& row) {
  return base->score_bound_holds_for(query, row);
}
double ScoreBound::limit_from_score(const Lengths& query, const Lengths& row, float score,
                                    float slack) const {
  return (this->*base->limit_from_score)(query, row, score, slack);
}

AdditiveCodewords::AdditiveCodewords(MemoryBudget& budget, std::size_t dim, std::size_t count,
                                     std::span<const float> codewords)
    : AdditiveCodewords(base->additive_codewords(budget, dim, count, codewords)) {}
std::uint64_t AdditiveCodewords::bytes(std::size_t dim, std::size_t count) {
  return base->additive_codewords_bytes(dim, count);
}
std::size_t AdditiveCodewords::width_of(std::size_t dim) { return base->additive_codewords_width(dim); }
std::size_t AdditiveCodewords::pair_entries(std::size_t count) { return base->additive_pair_entries(count); }
const std::byte* KeptVectors::read(const std::byte* kept, std::byte* scratch) const {
  return (this->*base->read_kept)(kept, scratch);
}
void ScalarCodec::encode_query(const RowsView& queries, std::size_t query, double* scratch,
                               std::int16_t* byte_query, std::int16_t* nibble_query) const {
  (this->*base->encode_query)(queries, query, scratch, byte_query, nibble_query);
}
void decode_rows(const ListCodec& codec, const ListView& view, std::size_t list, std::size_t first,
                 std::size_t count, std::byte* out) {
  base->decode_rows(codec, view, list, first, count, out);
}

}  // namespace nearwise

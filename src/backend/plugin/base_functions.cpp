// The library's side: its functions by their addresses.
#include "backend/plugin/plugin.h"
#include "core/check.h"
#include "core/lost_pages.h"

namespace nearwise {

const BaseFunctions& base_functions() {
  static constexpr BaseFunctions functions = {
      .assertion_failed = assertion_failed,
      .check_lost_pages = check_lost_pages,
      .stop_cancelled =
          [] {
            CancelFlag flag;
            flag.set();
            flag.check();
          },
      .refuse_row = refuse_row,
      .format_bytes = format_bytes,
      .element_size = element_size,
      .place_name = name,
      .place = &Context::place,
      .add_progress = &ProgressMeter::add,
      .for_each = &Threads::for_each,
      .take = &MemoryBudget::take,
      .give_back = &MemoryBudget::give_back,
      .available = &MemoryBudget::available,
      .buffer_bytes = buffer_bytes,
      .allocate_buffer = allocate_buffer,
      .free_buffer = free_buffer,
      .score_bound = [](Metric metric, Products products,
                        std::size_t dim) { return ScoreBound(metric, products, dim); },
      .score_bound_holds_for = ScoreBound::holds_for,
      .limit_from_score = &ScoreBound::limit_from_score,
      .additive_codewords =
          [](MemoryBudget& budget, std::size_t dim, std::size_t count, std::span<const float> codewords) {
            return AdditiveCodewords(budget, dim, count, codewords);
          },
      .additive_codewords_bytes = AdditiveCodewords::bytes,
      .additive_codewords_width = AdditiveCodewords::width_of,
      .additive_pair_entries = AdditiveCodewords::pair_entries,
      .read_kept = &KeptVectors::read,
      .encode_query = &ScalarCodec::encode_query,
      .decode_rows = decode_rows,
  };
  return functions;
}

}  // namespace nearwise

#include "backend/cpu/lists/code_evaluator.h"

#include <cmath>
#include <limits>

#include "backend/cpu/kernels/prefetch.h"
#include "core/check.h"

namespace nearwise::cpu {

CodeEvaluator::CodeEvaluator(const CpuStream& stream, const ListSearchArgs& args, const ListNumbers& numbers)
    : args_(args),
      numbers_(numbers),
      row_bytes_(args.codec.dim * element_size(args.codec.type)),
      decoded_(stream.budget(), batch * row_bytes_),
      view_(decoded_.data(), args.codec.type, batch, args.codec.dim, row_bytes_),
      evaluator_(stream, args.queries, view_, args.metric) {}

void CodeEvaluator::evaluate(const std::uint32_t* rows, std::size_t count, float* keys) {
  NEARWISE_ASSERT(count <= batch);
  ListNumbers::Place places[batch];
  // Codes are scattered in memory: prefetch all before decoding the first.
  for (std::size_t i = 0; i < count; ++i) {
    places[i] = numbers_.find(rows[i]);
    const std::byte* const codes = args_.lists[places[i].list].codes;
    prefetch(reinterpret_cast<std::uintptr_t>(codes + places[i].row * args_.codec.code_bytes),
             args_.codec.code_bytes);
  }
  for (std::size_t i = 0; i < count; ++i)
    decode_rows(args_.codec, args_.lists[places[i].list], places[i].list, places[i].row, 1,
                decoded_.data() + i * row_bytes_);
  evaluator_.evaluate(nullptr, 0, count, keys);
  // A reconstruction outside the f32 range may have no distance: it sorts last.
  for (std::size_t i = 0; i < count; ++i)
    if (std::isnan(keys[i])) keys[i] = std::numeric_limits<float>::infinity();
}

}  // namespace nearwise::cpu

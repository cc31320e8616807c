#include "backend/cpu/codes/additive_tables.h"

namespace nearwise::cpu {

static_assert(AdditiveCodebooks::words_each == additive_words);

std::uint64_t AdditiveTables::bytes(const AdditiveCodebooks& codebooks) {
  return AdditiveWords::bytes(codebooks.dim, codebooks.count) +
         buffer_bytes(AdditiveWords::pair_entries(codebooks.count), sizeof(std::int16_t));
}

AdditiveTables::AdditiveTables(CpuStream& cpu, const AdditiveCodebooks& given)
    : words_(cpu.budget(), given.dim, given.count, given.words),
      pairs_(cpu.budget(), AdditiveWords::pair_entries(given.count)) {
  const AdditiveKernels& kernels = additive_kernels(cpu.set);
  static constexpr float zeros[additive_words] = {};
  cpu.threads().for_each(codebooks() * (codebooks() - 1), [&](std::size_t slot) {
    cpu.context.cancel.check();
    const std::size_t book = slot / (codebooks() - 1);
    const std::size_t rest = slot % (codebooks() - 1);
    const std::size_t other = rest < book ? rest : rest + 1;
    kernels.scaled_products({.rows = words_.words().data() + other * additive_words * width(),
                             .stride = width(),
                             .count = additive_words,
                             .dim = words_.dim(),
                             .columns = columns(book),
                             .start = zeros,
                             .factor = 2,
                             .scale = words_.scales()[book],
                             .out = pairs_.data() + slot * additive_words * additive_words});
  });
}

void AdditiveTables::fill_own(const AdditiveKernels& kernels, std::size_t book, const float* rows,
                              std::size_t count, std::int16_t* out) const {
  kernels.scaled_products({.rows = rows,
                           .stride = width(),
                           .count = count,
                           .dim = words_.dim(),
                           .columns = columns(book),
                           .start = words_.norms().data() + book * additive_words,
                           .factor = -2,
                           .scale = words_.scales()[book],
                           .out = out});
}

}  // namespace nearwise::cpu

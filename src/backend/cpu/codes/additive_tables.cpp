#include "backend/cpu/codes/additive_tables.h"

namespace nearwise::cpu {

static_assert(AdditiveCodebooks::codebook_size == additive_codebook_size);

std::uint64_t AdditiveTables::bytes(const AdditiveCodebooks& codebooks) {
  return AdditiveCodewords::bytes(codebooks.dim, codebooks.count) +
         buffer_bytes(AdditiveCodewords::pair_entries(codebooks.count), sizeof(std::int16_t));
}

AdditiveTables::AdditiveTables(CpuStream& cpu, const AdditiveCodebooks& given)
    : codewords_(cpu.budget(), given.dim, given.count, given.codewords),
      pairs_(cpu.budget(), AdditiveCodewords::pair_entries(given.count)) {
  const AdditiveKernels& kernels = additive_kernels(cpu.set);
  static constexpr float zeros[additive_codebook_size] = {};
  cpu.threads().for_each(codebooks() * (codebooks() - 1), [&](std::size_t slot) {
    cpu.context.cancel.check();
    const std::size_t book = slot / (codebooks() - 1);
    const std::size_t rest = slot % (codebooks() - 1);
    const std::size_t other = rest < book ? rest : rest + 1;
    kernels.scaled_products({.rows = codewords_.codewords().data() + other * additive_codebook_size * width(),
                             .stride = width(),
                             .count = additive_codebook_size,
                             .dim = codewords_.dim(),
                             .columns = columns(book),
                             .start = zeros,
                             .factor = 2,
                             .scale = codewords_.scales()[book],
                             .out = pairs_.data() + slot * additive_codebook_size * additive_codebook_size});
  });
}

void AdditiveTables::fill_own(const AdditiveKernels& kernels, std::size_t book, const float* rows,
                              std::size_t count, std::int16_t* out) const {
  kernels.scaled_products({.rows = rows,
                           .stride = width(),
                           .count = count,
                           .dim = codewords_.dim(),
                           .columns = columns(book),
                           .start = codewords_.norms().data() + book * additive_codebook_size,
                           .factor = -2,
                           .scale = codewords_.scales()[book],
                           .out = out});
}

}  // namespace nearwise::cpu

// Tables of additive encoding, computed once per codebooks and shared by all threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/codes/additive_codes.h"
#include "backend/cpu/stream.h"
#include "backend/ops.h"
#include "codes/additive_codewords.h"
#include "core/memory.h"

namespace nearwise::cpu {

// Codewords, and twice the products of all pairs of codewords of different codebooks.
class AdditiveTables {
 public:
  AdditiveTables(CpuStream& cpu, const AdditiveCodebooks& codebooks);
  static std::uint64_t bytes(const AdditiveCodebooks& codebooks);

  std::size_t codebooks() const { return codewords_.count(); }
  std::size_t width() const { return codewords_.width(); }
  const AdditiveCodewords& codewords() const { return codewords_; }

  // [codewords of `other`, codewords of `book`]
  const std::int16_t* pairs(std::size_t book, std::size_t other) const {
    const std::size_t slot = book * (codebooks() - 1) + (other < book ? other : other - 1);
    return pairs_.data() + slot * additive_codebook_size * additive_codebook_size;
  }

  // Unary terms of rows [count, width] for one codebook: out [count, 256].
  void fill_own(const AdditiveKernels& kernels, std::size_t book, const float* rows, std::size_t count,
                std::int16_t* out) const;

 private:
  const float* columns(std::size_t book) const {
    return codewords_.columns().data() + book * codewords_.dim() * additive_codebook_size;
  }

  const AdditiveCodewords codewords_;
  Buffer<std::int16_t> pairs_;  // [codebooks, codebooks - 1, 256, 256]
};

}  // namespace nearwise::cpu

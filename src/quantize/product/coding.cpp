#include "quantize/product/coding.h"

#include <algorithm>
#include <span>

#include "backend/dispatch.h"
#include "ops/finite_rows.h"

namespace nearwise::quantize {
namespace {

// Rows checked and then encoded while they are in the cache.
constexpr std::size_t tile_rows = 65536;

std::size_t code_at(std::span<const std::uint8_t> code, std::size_t part, unsigned bits) {
  if (bits == 8) return code[part];
  return part % 2 == 0 ? code[part / 2] & 15U : code[part / 2] >> 4U;
}

void decode_row(const Codebooks& codebooks, std::span<const std::uint8_t> code, float* out) {
  for (std::size_t part = 0; part < codebooks.parts; ++part) {
    const std::size_t length = codebooks.length(part);
    const float* const codewords = codebooks.of(part).data();
    out = std::copy_n(codewords + code_at(code, part, codebooks.bits) * length, length, out);
  }
}

}  // namespace

std::uint64_t encode_bytes(const char* operation, const Context& context, const Codebooks& codebooks) {
  const auto stream = open_stream(context);
  return dispatch(&Ops::part_codes_bytes, operation, *stream, codebooks);
}

void encode_rows(const char* operation, const Context& context, const RowsView& rows, std::size_t first_row,
                 const Codebooks& codebooks, const MatrixView<std::uint8_t>& codes, ProgressMeter* progress) {
  const auto stream = open_stream(context);
  for (std::size_t first = 0; first < rows.rows(); first += tile_rows) {
    const RowsView tile = rows.slice(first, std::min(tile_rows, rows.rows() - first));
    check_finite(operation, context, tile, first_row + first);
    dispatch(&Ops::part_codes, operation, *stream,
             PartCodesArgs{.rows = tile,
                           .codebooks = codebooks,
                           .codes = codes.slice(first, tile.rows()),
                           .progress = progress});
  }
}

Decoder decoder_of(const Codebooks& codebooks) {
  return {codebooks.dim,
          [codebooks](std::span<const std::uint8_t> code, float* row) { decode_row(codebooks, code, row); }};
}

}  // namespace nearwise::quantize

#include "backend/cpu/lists/product_panels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/kernels/codes/part_sums.h"
#include "backend/cpu/lists/list_rows.h"
#include "codes/codeword_tables.h"
#include "core/distance.h"

namespace nearwise::cpu {
namespace {

// Nearest bf16, ties to even; denormal results become zero, as in kernels/pack_rows.cpp.
float rounded_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1U)) & 0xFFFF0000U;
  return (rounded & 0x7F800000U) == 0 ? 0.0F : std::bit_cast<float>(rounded);
}

}  // namespace

ProductPanels::ProductPanels(CpuStream& cpu, const ListCodec& codec, const CodewordTables& codewords,
                             const ScanKernel& scan, Metric metric, std::span<const float> centre)
    : cpu_(cpu),
      codec_(codec),
      codewords_(codewords),
      metric_(metric),
      centre_(centre),
      element_bytes_(encoded_sizes[static_cast<std::size_t>(scan.base_encoding)]),
      unit_bytes_(scan.base_unit_bytes),
      packed_(cpu.budget(), codec.codewords.size() * element_bytes_),
      packed_columns_(cpu.budget(), codec.codewords.size()),
      squares_(cpu.budget(), table_size(codec)) {
  encode_codewords(scan);
  longest_.centroid = codewords.longest_centroid();
  longest_.given_centroid = codewords.longest_given_centroid();
  longest_.operations = table_operations(codec);
}

std::uint64_t ProductPanels::bytes(const ScanKernel& scan, std::size_t dim) {
  const std::size_t max_codewords = 256;
  return buffer_bytes(max_codewords * dim, encoded_sizes[static_cast<std::size_t>(scan.base_encoding)]) +
         2 * buffer_bytes(max_codewords * dim, sizeof(float));
}

void ProductPanels::encode_codewords(const ScanKernel& scan) {
  const std::size_t codewords = std::size_t{1} << codec_.bits;
  double norms = 0;
  double residuals = 0;
  double lost_share = 0;
  std::size_t first = 0;  // element of the codebooks
  for (std::size_t part = 0; part < codec_.parts(); ++part) {
    const std::size_t length = codec_.part_begins[part + 1] - codec_.part_begins[part];
    double longest = 0;
    double max_lost = 0;
    for (std::size_t codeword = 0; codeword < codewords; ++codeword) {
      double packed_squares = 0;
      double lost = 0;
      for (std::size_t i = 0; i < length; ++i) {
        const std::size_t place = first + codeword * length + i;
        const float value = codec_.codewords[place];
        const float packed = scan.base_encoding == Encoding::bf16 ? rounded_to_bf16(value) : value;
        if (scan.base_encoding == Encoding::bf16) {
          const auto half = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(packed) >> 16);
          std::memcpy(packed_.data() + place * element_bytes_, &half, sizeof(half));
        } else {
          std::memcpy(packed_.data() + place * element_bytes_, &packed, sizeof(packed));
        }
        packed_columns_[first + i * codewords + codeword] = packed;
        packed_squares += static_cast<double>(packed) * packed;
        const double difference = static_cast<double>(value) - packed;
        lost += difference * difference;
      }
      longest = std::max(longest, packed_squares);
      max_lost = std::max(max_lost, lost);
      squares_[part * codewords + codeword] = static_cast<float>(packed_squares);
      // A codeword that packs to zero has no relative error: 1e30 makes the absolute bound apply.
      lost_share = std::max(lost_share, packed_squares > 0 ? lost / packed_squares : lost > 0 ? 1e30 : 0);
    }
    norms += longest;
    residuals += max_lost;
    first += length * codewords;
  }
  longest_.codewords = {length_bound(norms), length_bound(residuals)};
  max_loss_ = length_bound(lost_share);
}

// Returns half the squared norm of the centroid minus the centre.
float ProductPanels::fill_tables(std::size_t list, std::span<float> tables) const {
  const std::size_t codewords = std::size_t{1} << codec_.bits;
  const std::span<const float> centroid = codec_.centroids.row(list);
  const PartSumsKernels& kernels = part_sums_kernels(cpu_.set);
  float shifted[64];
  double squares = 0;
  for (std::size_t part = 0; part < codec_.parts(); ++part) {
    const std::size_t begin = codec_.part_begins[part];
    const std::size_t end = codec_.part_begins[part + 1];
    const float* from = codewords_.half_norms().data() + part * codewords;
    // Long parts are added in pieces of 64 elements.
    for (std::size_t first = begin; first < end; first += std::size(shifted)) {
      const std::size_t length = std::min(std::size(shifted), end - first);
      for (std::size_t i = 0; i < length; ++i) {
        shifted[i] = centre_.empty() ? centroid[first + i] : centroid[first + i] - centre_[first + i];
        squares += static_cast<double>(shifted[i]) * shifted[i];
      }
      kernels.add_products({.columns = codewords_.columns().data() + first * codewords,
                            .start = from,
                            .vector = shifted,
                            .dim = length,
                            .codewords = codewords,
                            .table = tables.data() + part * codewords});
      from = tables.data() + part * codewords;
    }
  }
  return static_cast<float>(squares / 2);
}

void ProductPanels::fill_corrections(const float* packed, const float* query, std::span<float> tables) const {
  const std::size_t codewords = std::size_t{1} << codec_.bits;
  const PartSumsKernels& kernels = part_sums_kernels(cpu_.set);
  std::ranges::fill(tables, 0.0F);
  for (std::size_t part = 0; part < codec_.parts(); ++part) {
    const std::size_t begin = codec_.part_begins[part];
    PartTableArgs args = {.columns = packed_columns_.data() + begin * codewords,
                          .start = tables.data() + part * codewords,
                          .vector = packed + begin,
                          .dim = codec_.part_begins[part + 1] - begin,
                          .codewords = codewords,
                          .table = tables.data() + part * codewords};
    kernels.add_products(args);
    args.columns = codewords_.columns().data() + begin * codewords;
    args.vector = query + begin;
    kernels.subtract_products(args);
  }
}

Lengths ProductPanels::longest_of(const std::byte* codes, std::size_t count) const {
  float most = 0;
  for (std::size_t row = 0; row < count; ++row) {
    const std::byte* const code = codes + row * codec_.code_bytes;
    most = std::max(most, codec_.bits == 8 ? sum_entries<8>(squares_.data(), codec_.parts(), code, 0)
                                           : sum_entries<4>(squares_.data(), codec_.parts(), code, 0));
  }
  // Margin for the rounding of squares and of their sums.
  const double norm =
      length_bound(static_cast<double>(most) * (1 + 0x1p-20 * static_cast<double>(codec_.parts())) +
                   0x1p-140 * static_cast<double>(codec_.parts()));
  return {std::min(norm, longest_.codewords.norm), std::min(max_loss_ * norm, longest_.codewords.residual)};
}

Lengths ProductPanels::fill(const ListView& view, std::size_t list, std::size_t first, std::size_t count,
                            const float* norms, std::span<float> tables, PackedRows& out) const {
  const std::byte* const codes = view.codes + first * codec_.code_bytes;
  const std::size_t part_bytes =
      codec_.dim % codec_.parts() == 0 ? codec_.dim / codec_.parts() * element_bytes_ : 0;
  if (part_bytes != 0 && unit_bytes_ % part_bytes == 0 && part_bytes >= 4) {
    switch (part_bytes) {
      case 4: copy_parts<4>(codes, count, out); break;
      case 8: copy_parts<8>(codes, count, out); break;
      case 16: copy_parts<16>(codes, count, out); break;
      case 32: copy_parts<32>(codes, count, out); break;
      default: copy_parts<64>(codes, count, out); break;
    }
  } else {
    copy_units(codes, count, out);
  }
  const std::size_t places = (count + out.width - 1) / out.width * out.width;
  if (norms != nullptr) {
    std::copy_n(norms + first, count, out.biases.data());
  } else if (is_euclidean(metric_)) {
    const float bias = fill_tables(list, tables);
    if (codec_.bits == 8)
      add_tables<8>(codes, count, tables, bias, out.biases.data());
    else
      add_tables<4>(codes, count, tables, bias, out.biases.data());
  } else {
    std::fill_n(out.biases.data(), count, 0.0F);
  }
  // Padding of the last panel is read: an infinite bias passes no cutoff.
  std::fill(out.biases.data() + count, out.biases.data() + places, std::numeric_limits<float>::infinity());
  return longest_of(codes, count);
}

template <unsigned bits>
void ProductPanels::add_tables(const std::byte* codes, std::size_t count, std::span<const float> tables,
                               float bias, float* out) const {
  const std::size_t parts = codec_.parts();
  const std::size_t code_bytes = codec_.code_bytes;
  for (std::size_t row = 0; row < count; ++row)
    out[row] = sum_entries<bits>(tables.data(), parts, codes + row * code_bytes, bias);
}

float ProductPanels::sum_of(std::span<const float> tables, const std::byte* code) const {
  float sum;
  codec_.bits == 8 ? add_tables<8>(code, 1, tables, 0, &sum) : add_tables<4>(code, 1, tables, 0, &sum);
  return sum;
}

// For parts that do not cross units. Padding after the last part stays zero. The loops use locals only: byte
// stores may alias any member.
template <std::size_t bytes, unsigned bits>
void ProductPanels::copy_parts(const std::byte* codes, std::size_t count, PackedRows& out) const {
  const std::size_t parts = codec_.parts();
  const std::size_t code_bytes = codec_.code_bytes;
  const std::size_t per_unit = unit_bytes_ / bytes;
  const std::size_t unit_bytes = unit_bytes_;
  const std::size_t unit_stride = out.width * unit_bytes;
  const std::size_t width = out.width;
  const std::size_t panel_bytes = out.panel_bytes();
  const std::byte* const codewords = packed_.data();
  std::byte* const panels = out.panel(0);
  for (std::size_t row = 0; row < count; ++row) {
    const std::byte* const code = codes + row * code_bytes;
    const std::byte* book = codewords;
    std::byte* to = panels + row / width * panel_bytes + row % width * unit_bytes;
    for (std::size_t part = 0; part < parts; to += unit_stride) {
      const std::size_t end = std::min(parts, part + per_unit);
      for (std::size_t place = 0; part < end; ++part, place += bytes) {
        std::memcpy(to + place, book + codeword_of<bits>(code, part) * bytes, bytes);
        book += bytes << bits;
      }
    }
  }
}

// For parts of any length, split at unit boundaries.
void ProductPanels::copy_units(const std::byte* codes, std::size_t count, PackedRows& out) const {
  for (std::size_t row = 0; row < count; ++row) {
    const std::byte* const code = codes + row * codec_.code_bytes;
    std::byte* const panel = out.panel(row / out.width) + row % out.width * unit_bytes_;
    const std::byte* book = packed_.data();
    for (std::size_t part = 0; part < codec_.parts(); ++part) {
      const std::size_t begin = codec_.part_begins[part] * element_bytes_;
      const std::size_t end = codec_.part_begins[part + 1] * element_bytes_;
      const std::byte* from = book + codeword_of(codec_, code, part) * (end - begin);
      for (std::size_t place = begin; place < end;) {
        const std::size_t piece = std::min(end - place, unit_bytes_ - place % unit_bytes_);
        std::memcpy(panel + place / unit_bytes_ * out.width * unit_bytes_ + place % unit_bytes_, from, piece);
        from += piece;
        place += piece;
      }
      book += (end - begin) << codec_.bits;
    }
  }
}

}  // namespace nearwise::cpu

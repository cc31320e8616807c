#include "codes/kept_vectors.h"

#include <cstdint>
#include <cstring>

namespace nearwise {

const std::byte* KeptVectors::read(const std::byte* kept, std::byte* scratch) const {
  if (is_in_file()) return row_of(kept);
  if (!is_scaled()) return kept;
  for (std::size_t i = 0; i < dim; ++i) {
    // In f64, where neither the product nor the sum of such numbers overflows; rounded once.
    const double element =
        static_cast<double>(offsets[i]) +
        static_cast<double>(step) * static_cast<double>(static_cast<std::uint8_t>(kept[i]));
    const auto rounded = static_cast<float>(element);
    std::memcpy(scratch + i * sizeof(float), &rounded, sizeof(float));
  }
  return scratch;
}

}  // namespace nearwise

// The vectors of entries: those of flat lists, or those kept in addition to codes.
#pragma once

#include <cstddef>
#include <cstring>

#include "ivf/ivf_state.h"

namespace nearwise::ivf {

class EntryVectors {
 public:
  explicit EntryVectors(const IvfInternals::State& state)
      : is_flat_(state.is_flat()),
        kept_(state.vectors.view()),
        dim_(state.centroids.cols()),
        type_(is_flat_ ? state.codec->view().type : state.vectors.type) {}

  bool any() const { return is_flat_ || kept_.any(); }
  ElementType type() const { return type_; }
  std::size_t dim() const { return dim_; }
  std::size_t bytes() const { return dim_ * element_size(type_); }
  void copy(const ListView& list, std::size_t row, std::byte* out) const {
    const std::byte* const from =
        is_flat_ ? list.codes + row * bytes() : kept_.read(list.vectors + row * kept_.bytes, out);
    if (from != out) std::memcpy(out, from, bytes());
  }

 private:
  const bool is_flat_;
  const KeptVectors kept_;
  const std::size_t dim_;
  const ElementType type_;
};

}  // namespace nearwise::ivf

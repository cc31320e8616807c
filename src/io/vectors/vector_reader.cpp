// VectorReader: a file of vectors in chunks of bounded size, read without mapping it.
#include <algorithm>
#include <vector>

#include "core/memory.h"
#include "io/files/input_file.h"
#include "io/vectors/vector_layout.h"
#include "nearwise/vector_file.h"

namespace nearwise {

class VectorReader::Impl {
 public:
  Impl(const std::filesystem::path& path, std::size_t max_bytes)
      : source_("open " + path.native()), file_(path) {
    std::vector<std::byte> head(std::min<std::uint64_t>(file_.size(), most_head_bytes));
    file_.read(0, head);
    layout_ = layout_of(format_of(path, head, "open"), head, file_.size(), source_);
    require_vectors(layout_, source_);
    if (layout_.rows == 0) return;
    rows_per_chunk_ = std::clamp<std::size_t>(max_bytes / layout_.stride_bytes, 1, layout_.rows);
    chunk_.reset(static_cast<std::byte*>(allocate_aligned(rows_per_chunk_ * layout_.stride_bytes)));
  }

  const VectorLayout& layout() const { return layout_; }

  RowsView next() {
    const std::size_t count = std::min(rows_per_chunk_, layout_.rows - next_row_);
    const std::size_t prefix = row_prefix_bytes(layout_.format);
    const RowsView rows(chunk_.get() + (count == 0 ? 0 : prefix), element_type(layout_.type), count,
                        layout_.dim, layout_.stride_bytes);
    if (count == 0) return rows;
    const std::uint64_t offset = layout_.data_offset - prefix + next_row_ * layout_.stride_bytes;
    file_.read(offset, {chunk_.get(), count * layout_.stride_bytes});
    if (prefix != 0) check_row_prefixes(layout_, chunk_.get(), next_row_, count, source_);
    next_row_ += count;
    return rows;
  }

 private:
  struct Free {
    void operator()(std::byte* data) const noexcept { free_aligned(data); }
  };

  std::string source_;
  InputFile file_;
  VectorLayout layout_;
  std::size_t rows_per_chunk_ = 0;
  std::size_t next_row_ = 0;
  std::unique_ptr<std::byte, Free> chunk_;
};

VectorReader::VectorReader(const std::filesystem::path& path, std::size_t max_bytes)
    : impl_(std::make_unique<Impl>(path, max_bytes)) {}
VectorReader::VectorReader(VectorReader&&) noexcept = default;
VectorReader& VectorReader::operator=(VectorReader&&) noexcept = default;
VectorReader::~VectorReader() = default;

ElementType VectorReader::type() const { return element_type(impl_->layout().type); }
std::size_t VectorReader::rows() const { return impl_->layout().rows; }
std::size_t VectorReader::dim() const { return impl_->layout().dim; }
RowsView VectorReader::next() { return impl_->next(); }

}  // namespace nearwise

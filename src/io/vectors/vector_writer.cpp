// VectorWriter: vectors front to back, in the format of the suffix.
#include "core/check.h"
#include "io/vectors/row_output.h"
#include "nearwise/vector_file.h"

namespace nearwise {

class VectorWriter::Impl {
 public:
  Impl(const std::filesystem::path& path, ElementType type, std::size_t dim)
      : output(path, stored_type(type), dim) {}
  RowOutput output;
};

VectorWriter::VectorWriter(const std::filesystem::path& path, ElementType type, std::size_t dim)
    : impl_(std::make_unique<Impl>(path, type, dim)) {}
VectorWriter::VectorWriter(VectorWriter&&) noexcept = default;
VectorWriter& VectorWriter::operator=(VectorWriter&&) noexcept = default;
VectorWriter::~VectorWriter() = default;

void VectorWriter::append(RowsView rows) {
  RowOutput& output = impl_->output;
  const std::string path = output.path().native();
  require(rows.place().kind == DeviceKind::cpu, "write {}: rows in host memory expected, got rows on {}:{}",
          path, name(rows.place().kind), rows.place().ordinal);
  if (rows.rows() == 0) return;
  require(stored_type(rows.type()) == output.type(), "write {}: rows of {} expected, got {}", path,
          name(output.type()), name(rows.type()));
  require(rows.dim() == output.dim(), "write {}: rows of dimension {} expected, got {}", path, output.dim(),
          rows.dim());
  if (rows.stride_bytes() == output.row_bytes()) {
    output.append_packed({rows.data(), rows.rows() * output.row_bytes()}, rows.rows());
  } else {
    for (std::size_t row = 0; row < rows.rows(); ++row) output.append({rows.row(row), output.row_bytes()});
  }
}

void VectorWriter::commit() { impl_->output.commit(); }

}  // namespace nearwise

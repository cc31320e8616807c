// VectorFile: a mapped file of vectors.
#include "nearwise/vector_file.h"

#include "io/files/mapped_file.h"
#include "io/vectors/vector_layout.h"

namespace nearwise {

class VectorFile::Mapping {
 public:
  explicit Mapping(const std::filesystem::path& given) : path(given) {
    const std::string source = "open " + path.native();
    file = MappedFile(path);
    rows = read_mapped([&] {
      const Suffix& format = format_of(path, file.bytes(), "open");
      return vectors_in(check_vectors(format, file.bytes(), source), file.bytes(), source);
    });
  }

  std::filesystem::path path;
  MappedFile file;
  RowsView rows;
};

VectorFile VectorFile::open(const std::filesystem::path& path) {
  return VectorFile(std::make_unique<Mapping>(path));
}

VectorFile::VectorFile(std::unique_ptr<Mapping> mapping) : mapping_(std::move(mapping)) {}
VectorFile::VectorFile(VectorFile&&) noexcept = default;
VectorFile& VectorFile::operator=(VectorFile&&) noexcept = default;
VectorFile::~VectorFile() = default;

RowsView VectorFile::rows() const { return mapping_->rows; }
const std::filesystem::path& VectorFile::path() const { return mapping_->path; }

}  // namespace nearwise

#include "io/vectors/npy_header.h"

#include <optional>

#include "core/checked.h"
#include "io/files/little_endian.h"

namespace nearwise {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t most_dimensions = 32;  // NumPy's own limit

// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class Dictionary {
 public:
  Dictionary(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !has_descr) {
        header.descr = descr();
        has_descr = true;
      } else if (key == "fortran_order" && !has_order) {
        header.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        header.shape = tuple();
        has_shape = true;
      } else {
        fail(ErrorCode::corrupt, "{}: .npy header: key '{}' is unknown or given twice", source_, key);
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (position_ != text_.size()) unexpected("the end");
    if (!has_descr || !has_order || !has_shape)
      fail(ErrorCode::corrupt, "{}: .npy header: descr, fortran_order and shape expected, one is missing",
           source_);
    return header;
  }

 private:
  [[noreturn]] void unexpected(std::string_view expected) const {
    const std::string found =
        position_ < text_.size() ? fmt::format("{:?}", text_.substr(position_, 1)) : "the end";
    fail(ErrorCode::corrupt, "{}: .npy header, character {}: {} expected, {} found", source_, position_,
         expected, found);
  }

  void skip_space() { position_ = std::min(text_.find_first_not_of(" \t\n", position_), text_.size()); }

  bool accept(char wanted) {
    skip_space();
    if (position_ == text_.size() || text_[position_] != wanted) return false;
    ++position_;
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) unexpected(fmt::format("'{}'", wanted));
  }

  // No escapes: none of the texts we take has one.
  std::string string() {
    skip_space();
    const char quote = position_ < text_.size() ? text_[position_] : '\0';
    if (quote != '\'' && quote != '"') unexpected("a text in quotes");
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) unexpected("a closing quote");
    const std::string_view content = text_.substr(position_ + 1, end - position_ - 1);
    if (content.find_first_of("\\\n") != std::string_view::npos) unexpected("a plain text");
    position_ = end + 1;
    return std::string(content);
  }

  std::string descr() {
    skip_space();
    if (position_ < text_.size() && (text_[position_] == '[' || text_[position_] == '('))
      fail(ErrorCode::invalid_argument, "{}: an array of plain numbers expected, found structured elements",
           source_);
    return string();
  }

  bool boolean() {
    skip_space();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(position_, word.size()) == word) {
        position_ += word.size();
        return value;
      }
    }
    unexpected("True or False");
  }

  std::uint64_t number() {
    skip_space();
    std::uint64_t value = 0;
    const std::size_t first = position_;
    while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') {
      if (position_ > first && text_[first] == '0') unexpected("a number without leading zeros");
      const auto digit = static_cast<std::uint64_t>(text_[position_] - '0');
      value = checked_add(checked_multiply<std::uint64_t>(value, 10, source_.c_str(), ErrorCode::corrupt),
                          digit, source_.c_str(), ErrorCode::corrupt);
      ++position_;
    }
    if (position_ == first) unexpected("a number");
    return value;
  }

  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> values;
    expect('(');
    while (!accept(')')) {
      if (values.size() == most_dimensions) unexpected(fmt::format("at most {} dimensions", most_dimensions));
      values.push_back(number());
      if (!accept(',')) {
        // (3) is a number in parentheses; a tuple of one is (3,).
        if (values.size() == 1) unexpected("','");
        expect(')');
        break;
      }
    }
    return values;
  }

  const std::string_view text_;
  const std::string& source_;
  std::size_t position_ = 0;
};

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> head, const std::string& source) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (!text.starts_with(magic))
    fail(ErrorCode::corrupt, "{}: not a .npy file (its first bytes are not \\x93NUMPY)", source);
  if (text.size() < magic.size() + 2) fail(ErrorCode::corrupt, "{}: the .npy header is cut off", source);
  const unsigned major = static_cast<unsigned char>(text[6]);
  const unsigned minor = static_cast<unsigned char>(text[7]);
  if (major < 1 || major > 3 || minor != 0)
    fail(ErrorCode::invalid_argument, "{}: .npy format 1.0 to 3.0 expected, found {}.{}", source, major,
         minor);
  const std::size_t prefix = major == 1 ? 10 : 12;
  if (text.size() < prefix) fail(ErrorCode::corrupt, "{}: the .npy header is cut off", source);
  const std::size_t length =
      major == 1 ? load<std::uint16_t>(head.data() + 8) : load<std::uint32_t>(head.data() + 8);
  if (length > most_npy_header_bytes - prefix)
    fail(ErrorCode::corrupt, "{}: a .npy header of at most {} bytes expected, {} found", source,
         most_npy_header_bytes - prefix, length);
  if (length > text.size() - prefix)
    fail(ErrorCode::corrupt, "{}: the .npy header is cut off: {} bytes expected, {} found", source, length,
         text.size() - prefix);
  NpyHeader header = Dictionary(text.substr(prefix, length), source).parse();
  header.data_offset = prefix + length;
  return header;
}

std::string make_npy_header(std::string_view descr, std::uint64_t rows, std::uint64_t columns) {
  return make_npy_header(descr, {rows, columns});
}

std::string make_npy_header(std::string_view descr, const std::vector<std::uint64_t>& shape) {
  std::string header(magic);
  header += {'\x01', '\x00'};
  constexpr std::uint16_t length = written_npy_header_bytes - 10;
  header += {static_cast<char>(length & 0xFF), static_cast<char>(length >> 8)};
  // A tuple of one number is written with a comma behind it.
  header += fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr,
                        fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  NEARWISE_ASSERT(header.size() < written_npy_header_bytes);
  header.resize(written_npy_header_bytes - 1, ' ');
  header += '\n';
  return header;
}

}  // namespace nearwise

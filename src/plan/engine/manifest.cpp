#include "plan/engine/manifest.h"

#include <fcntl.h>
#include <xxhash.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "io/files/atomic_file.h"
#include "io/files/file_calls.h"
#include "io/files/file_error.h"
#include "io/files/input_file.h"
#include "plan/engine/file_lock.h"

namespace nearwise::plan {
namespace {

using Json = nlohmann::json;

constexpr std::size_t checksum_digits = 16;

std::uint64_t checksum_after(std::uint64_t before, std::string_view text) {
  return XXH3_64bits_withSeed(text.data(), text.size(), before);
}

std::string to_digits(std::uint64_t checksum) { return fmt::format("{:016x}", checksum); }

struct Content {
  std::vector<Json> records;
  std::string lines;           // complete lines only
  std::uint64_t checksum = 0;  // of the last line
  bool torn = false;
};

std::optional<std::string> text_of(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const InputFile file(path);
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

enum class Records : std::uint8_t { parsed, counted };  // counted: checksums are verified, JSON is not parsed

Json parse_line(std::string_view line, std::uint64_t& checksum, const std::filesystem::path& path,
                std::size_t number, Records wanted) {
  const auto broken = [&](const char* what) {
    fail(ErrorCode::corrupt, "{}: line {}: {}", path.native(), number, what);
  };
  if (line.size() < checksum_digits + 1 || line[line.size() - checksum_digits - 1] != '\t')
    broken("expected a record, a tab and a checksum of 16 digits");
  const std::string_view digits = line.substr(line.size() - checksum_digits);
  const std::string_view text = line.substr(0, line.size() - checksum_digits - 1);
  checksum = checksum_after(checksum, text);
  if (digits != to_digits(checksum)) broken("the checksum does not fit");
  if (wanted == Records::counted) return {};
  Json record = Json::parse(text, nullptr, false);
  if (!record.is_object()) broken("expected a JSON object");
  return record;
}

Content content_of(const std::filesystem::path& path, Records wanted) {
  Content content;
  const std::optional<std::string> text = text_of(path);
  if (!text) return content;
  std::size_t begin = 0;
  for (std::size_t end = text->find('\n'); end != std::string::npos; end = text->find('\n', begin)) {
    content.records.push_back(parse_line(std::string_view(*text).substr(begin, end - begin), content.checksum,
                                         path, content.records.size() + 1, wanted));
    begin = end + 1;
  }
  content.lines = text->substr(0, begin);
  content.torn = begin != text->size();
  return content;
}

// A failure leaves an incomplete last line, which readers ignore.
void append_line(const std::filesystem::path& path, std::string_view line) {
  const FileCalls& calls = file_calls();
  const int file =
      retry_interrupted([&] { return calls.open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC, 0); });
  if (file == -1) fail_file(ErrorCode::cannot_create, "append to", path, errno);
  int error = 0;
  while (!line.empty() && error == 0) {
    const ssize_t written = retry_interrupted([&] { return calls.write(file, line.data(), line.size()); });
    if (written <= 0)
      error = written == 0 ? ENOSPC : errno;
    else
      line.remove_prefix(static_cast<std::size_t>(written));
  }
  if (error == 0 && retry_interrupted([&] { return calls.fsync(file); }) == -1) error = errno;
  if (calls.close(file) == -1 && errno != EINTR && error == 0) error = errno;
  if (error != 0) fail_file(ErrorCode::io, "append to", path, error);
}

}  // namespace

std::vector<Json> Manifest::read() const { return content_of(path_, Records::parsed).records; }

void Manifest::append(const Json& record) const {
  const FileLock lock(std::filesystem::path(path_) += ".lock", FileLock::Mode::wait);
  const Content content = content_of(path_, Records::counted);
  const std::string text = record.dump();
  const std::string line = fmt::format("{}\t{}\n", text, to_digits(checksum_after(content.checksum, text)));
  if (!content.lines.empty() && !content.torn) return append_line(path_, line);
  AtomicFile file(path_);
  file.write(std::as_bytes(std::span(content.lines)));
  file.write(std::as_bytes(std::span(line)));
  file.commit();
}

}  // namespace nearwise::plan

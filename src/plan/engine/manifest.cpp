#include "plan/engine/manifest.h"

#include <fcntl.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "io/files/atomic_file.h"
#include "io/files/file_calls.h"
#include "io/files/file_error.h"
#include "io/files/folders.h"
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
  std::string lines;           // of the records
  std::uint64_t checksum = 0;  // of the last line
  bool damaged = false;        // the file has other bytes than these lines
};

std::optional<std::string> text_of(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const InputFile file(path);
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::string to_line(std::string_view text, std::uint64_t checksum) {
  return fmt::format("{}\t{}\n", text, to_digits(checksum));
}

std::uint64_t to_checksum(std::string_view digits) {
  std::uint64_t checksum = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), checksum, 16);
  return checksum;
}

// Of the JSON of a record, which has 3: more is damage, and code that reads it recursively would overflow the
// stack.
constexpr int max_depth = 32;

enum class Records : std::uint8_t { parsed, counted };  // counted: checksums are verified, JSON is not parsed

// line: without its line feed. before: the checksum written in the line before. Adds the record unless the
// line is damaged.
void add_line(std::string_view line, std::uint64_t before, Records wanted, Content& content) {
  if (line.size() < checksum_digits + 1 || line[line.size() - checksum_digits - 1] != '\t') return;
  const std::string_view text = line.substr(0, line.size() - checksum_digits - 1);
  if (line.substr(line.size() - checksum_digits) != to_digits(checksum_after(before, text))) return;
  if (wanted == Records::parsed) {
    bool is_shallow = true;
    const auto is_read = [&](int depth, Json::parse_event_t, const Json&) {
      return is_shallow = is_shallow && depth <= max_depth;
    };
    Json record = Json::parse(text, is_read, false);
    if (!is_shallow || !record.is_object()) return;
    content.records.push_back(std::move(record));
  }
  content.checksum = checksum_after(content.checksum, text);  // not `before` where a line was left out
  content.lines += to_line(text, content.checksum);
}

Content content_of(const std::filesystem::path& path, Records wanted) {
  Content content;
  const std::optional<std::string> text = text_of(path);
  if (!text) return content;
  std::size_t begin = 0;
  std::uint64_t before = 0;
  for (std::size_t end = text->find('\n'); end != std::string::npos; end = text->find('\n', begin)) {
    const std::string_view line = std::string_view(*text).substr(begin, end - begin);
    add_line(line, before, wanted, content);
    before = to_checksum(line.substr(line.size() - std::min(line.size(), checksum_digits)));
    begin = end + 1;
  }
  content.damaged = content.lines != *text;
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

void Manifest::sync() const {
  const FileCalls& calls = file_calls();
  const int file = retry_interrupted([&] { return calls.open(path_.c_str(), O_RDONLY | O_CLOEXEC, 0); });
  if (file == -1) fail_file(ErrorCode::io, "sync", path_, errno);
  const int synced = retry_interrupted([&] { return calls.fsync(file); });
  const int error = errno;
  calls.close(file);
  if (synced == -1) fail_file(ErrorCode::io, "sync", path_, error);
  sync_folder(path_.parent_path());  // the file may be new
}

void Manifest::append(const Json& record) const {
  const NewFilesScope new_files(permitted_);
  const FileLock lock(std::filesystem::path(path_) += ".lock", FileLock::Mode::wait);
  const Content content = content_of(path_, Records::counted);
  const std::string text = record.dump();
  const std::string line = to_line(text, checksum_after(content.checksum, text));
  if (!content.lines.empty() && !content.damaged) return append_line(path_, line);
  AtomicFile file(path_);
  file.write(std::as_bytes(std::span(content.lines)));
  file.write(std::as_bytes(std::span(line)));
  file.commit();
}

}  // namespace nearwise::plan

#include "io/files/atomic_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "core/lost_pages.h"
#include "core/progress.h"
#include "io/files/file_calls.h"
#include "io/files/file_error.h"
#include "io/files/new_files.h"

namespace nearwise {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t buffer_capacity = std::size_t{256} << 10;
constexpr std::string_view temporary_suffix = ".tmp";
constexpr std::size_t random_digits = 16;
// Written and synced at a time: tens of milliseconds on a slow disk.
constexpr std::size_t synced_bytes = std::size_t{4} << 20;

// What the names of all temporaries for this target begin with.
std::string temporary_prefix(const fs::path& target) {
  std::string name = target.filename().native();
  // The longest name a file system takes is 255 bytes, and ours is longer than the target's.
  if (name.size() > 200)
    name = fmt::format("{}~{:016x}", name.substr(0, 160), XXH3_64bits(name.data(), name.size()));
  return "." + name + ".";
}

fs::path temporary_name(const fs::path& target) {
  std::uint64_t random = 0;
  // Without entropy the names would only collide more often, and O_EXCL catches that.
  if (file_calls().getentropy(&random, sizeof(random)) != 0)
    random = static_cast<std::uint64_t>(std::clock());
  return target.parent_path() / fmt::format("{}{}.{:016x}{}", temporary_prefix(target), file_calls().getpid(),
                                            random, temporary_suffix);
}

// The process in the name of a temporary of this prefix; 0 for any other name.
pid_t process_of(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || !name.ends_with(temporary_suffix)) return 0;
  if (name.size() < prefix.size() + temporary_suffix.size()) return 0;
  name.remove_prefix(prefix.size());
  name.remove_suffix(temporary_suffix.size());
  pid_t process = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
  if (error != std::errc() || process <= 0) return 0;
  const std::string_view rest(end, static_cast<std::size_t>(name.data() + name.size() - end));
  const bool ours = rest.size() == 1 + random_digits && rest.front() == '.' &&
                    rest.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
  return ours ? process : 0;
}

// Whatever the target.
pid_t process_of(std::string_view name) {
  // Before the process and the random digits there is the name between dots.
  std::size_t dots = 0;
  for (std::size_t i = name.size(); i > 0; --i)
    if (name[i - 1] == '.' && ++dots == 3) return i > 2 ? process_of(name, name.substr(0, i)) : 0;
  return 0;
}

void remove_if_abandoned(const fs::path& temporary) {
  const FileCalls& calls = file_calls();
  const int file = calls.open(temporary.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
  if (file == -1) return;
  // A process of another container or machine has a number that means nothing here; its lock does.
  if (calls.flock(file, LOCK_EX | LOCK_NB) == 0) calls.unlink(temporary.c_str());
  calls.close(file);
}

// Removes the temporaries of dead processes. process_in: the process in the name of a temporary, 0 for any
// other name.
template <typename ProcessIn>
void sweep(const fs::path& folder, const ProcessIn& process_in) {
  // Not by std::filesystem::directory_iterator: without memory it ends the process (libstdc++ 12).
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(folder.c_str()), closedir);
  // A folder that cannot be listed can still be written to.
  if (listing == nullptr) return;
  while (const dirent* const entry = readdir(listing.get())) {
    const pid_t process = process_in(std::string(entry->d_name));
    if (process != 0 && file_calls().kill(process, 0) == -1 && errno == ESRCH)
      remove_if_abandoned(folder / entry->d_name);
  }
}

// Where a chain of symbolic links ends, whether or not something is there.
fs::path follow_links(fs::path path) {
  constexpr int most_links = 40;
  for (int i = 0; i < most_links; ++i) {
    std::error_code error;
    const fs::path next = fs::read_symlink(path, error);
    if (error) return path;
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  fail_file(ErrorCode::cannot_create, "create", path, ELOOP);
}

// Reads a byte of every page: a lost one raises the signal that write() does not.
void read_pages(std::span<const std::byte> bytes) {
  const volatile std::byte* const data = bytes.data();
  constexpr std::size_t page = 4096;  // or a multiple of it
  for (std::size_t i = 0; i < bytes.size(); i += page) static_cast<void>(data[i]);
  if (!bytes.empty()) static_cast<void>(data[bytes.size() - 1]);
}

}  // namespace

void sweep_stale_temporaries(const fs::path& target) noexcept {
  try {
    const std::string prefix = temporary_prefix(target);
    sweep(target.parent_path(), [&](const std::string& name) { return process_of(name, prefix); });
  } catch (const std::exception&) {
    return;  // what is left costs disk space
  }
}

void sweep_folder(const fs::path& folder) noexcept {
  try {
    sweep(folder, [](const std::string& name) { return name.starts_with('.') ? process_of(name) : 0; });
  } catch (const std::exception&) {
    // As above.
  }
}

AtomicFile::AtomicFile(const fs::path& path) : AtomicFile(path, State::open) {
  std::error_code error;
  target_ = fs::absolute(path, error);  // a later chdir() must not move the target
  if (error) fail_file(ErrorCode::cannot_create, "create", path, error.value());
  target_ = follow_links(target_);
  if (!target_.has_filename()) fail_file(ErrorCode::cannot_create, "create", path, EISDIR);

  struct stat status {};
  if (stat(target_.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) fail_file(ErrorCode::cannot_create, "create", path, EISDIR);
    // Renaming over a device or pipe would destroy it.
    if (!S_ISREG(status.st_mode))
      fail(ErrorCode::cannot_create, "create {}: expected a regular file or nothing, found a device or pipe",
           path.native());
    replaces_ = true;
    kept_mode_ = permitted_mode(status.st_mode & 0777);
    kept_owner_ = status.st_uid;
    kept_group_ = status.st_gid;
  } else if (errno != ENOENT) {
    // A name too long, a folder without access: say so now, not after hours of writing.
    fail_file(ErrorCode::cannot_create, "create", path, errno);
  }

  buffer_ = std::make_unique_for_overwrite<std::byte[]>(buffer_capacity);
  const fs::path folder = target_.parent_path();
  folder_ = retry_interrupted(
      [&] { return file_calls().open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); });
  if (folder_ == -1) discard_and_fail("create", errno);
  sweep_stale_temporaries(target_);
  create_temporary();
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::create_temporary() {
  constexpr int attempts = 100;
  for (int i = 0; i < attempts; ++i) {
    fs::path candidate = temporary_name(target_);
    // A replacement stays private until it gets the permissions of what it replaces.
    const mode_t mode = replaces_ ? kept_mode_ & 0600 : permitted_mode(0666);
    file_ = retry_interrupted(
        [&] { return file_calls().open(candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode); });
    if (file_ != -1) {
      temporary_ = std::move(candidate);
      break;
    }
    if (errno != EEXIST || i + 1 == attempts) discard_and_fail("create", errno);
  }
  // Tells sweepers that the writer lives. Where the file system has no locks, its process number still does.
  file_calls().flock(file_, LOCK_EX | LOCK_NB);
}

void AtomicFile::require_open() const {
  if (state_ == State::committed)
    fail(ErrorCode::invalid_argument, "write {}: the file is already complete", path_.native());
  if (state_ == State::discarded)
    fail(ErrorCode::io, "write {}: an earlier failure has discarded this output", path_.native());
}

template <typename Check>
void AtomicFile::stop_unless(const Check& check) {
  try {
    check();
  } catch (...) {
    discard();  // part of the buffer may be written: nothing can follow
    throw;
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  require_open();
  const LostPagesScope lost_pages;
  stop_unless([&] { check_mapped(bytes.data(), bytes.size()); });
  if (bytes.size() > buffer_capacity - buffered_) flush();
  if (bytes.size() > buffer_capacity) {
    write_through(bytes);
  } else if (!bytes.empty()) {
    std::memcpy(buffer_.get() + buffered_, bytes.data(), bytes.size());
    buffered_ += bytes.size();
  }
  stop_unless(check_lost_pages);
  size_ += bytes.size();
}

void AtomicFile::write_zeros(std::size_t bytes) {
  constexpr std::array<std::byte, 4096> zeros{};
  while (bytes != 0) {
    const std::size_t piece = std::min(bytes, zeros.size());
    write({zeros.data(), piece});
    bytes -= piece;
  }
}

void AtomicFile::flush() {
  write_through({buffer_.get(), buffered_});
  buffered_ = 0;
}

void AtomicFile::write_through(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    stop_unless(check_cancelled);
    const std::size_t piece = std::min(bytes.size(), synced_bytes);
    const ssize_t written = retry_interrupted([&] { return file_calls().write(file_, bytes.data(), piece); });
    if (written == -1 && errno == EFAULT) {
      read_pages(bytes.first(piece));
      stop_unless(check_lost_pages);
      errno = EFAULT;
    }
    if (written <= 0) discard_and_fail("write", written == 0 ? ENOSPC : errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

// Syncs in pieces, so that it can be cancelled: an fsync() of a large file takes seconds. A file system that
// cannot do this leaves all of the work to fsync(). Any other failure is final: fsync() would not report it
// again.
void AtomicFile::sync_pieces() {
  constexpr unsigned wait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  for (std::uint64_t offset = 0; offset < size_; offset += synced_bytes) {
    stop_unless(check_cancelled);
    if (retry_interrupted([&] {
          return file_calls().sync_file_range(file_, static_cast<off64_t>(offset), synced_bytes, wait);
        }) == 0)
      continue;
    if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP || errno == ESPIPE) return;
    discard_and_fail("sync", errno);
  }
}

void AtomicFile::overwrite(std::uint64_t offset, std::span<const std::byte> bytes) {
  require_open();
  NEARWISE_ASSERT(offset <= size_ && bytes.size() <= size_ - offset);
  flush();
  while (!bytes.empty()) {
    const ssize_t written = retry_interrupted(
        [&] { return file_calls().pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (written <= 0) discard_and_fail("write", written == 0 ? ENOSPC : errno);
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::keep_owner_and_mode() {
  struct stat made {};
  if (fstat(file_, &made) == -1) discard_and_fail("keep the permissions of", errno);
  bool has_group = made.st_gid == kept_group_;
  if (made.st_uid != kept_owner_ || !has_group) {
    const FileCalls& calls = file_calls();
    // Only root gives files away; a group may be set by its members.
    has_group = calls.fchown(file_, kept_owner_, kept_group_) == 0 ||
                calls.fchown(file_, static_cast<uid_t>(-1), kept_group_) == 0 || has_group;
  }
  // Another group gets no more than everybody.
  const mode_t everybody = (kept_mode_ & 07) << 3;
  const mode_t mode = has_group ? kept_mode_ : (kept_mode_ & 0707) | (kept_mode_ & everybody);
  if (retry_interrupted([&] { return file_calls().fchmod(file_, mode); }) == -1)
    discard_and_fail("keep the permissions of", errno);
}

void AtomicFile::close_file() {
  // Whatever close() answers, the descriptor is gone. Interrupted is no failure: the data is already synced.
  if (file_calls().close(std::exchange(file_, -1)) == -1 && errno != EINTR) discard_and_fail("close", errno);
}

void AtomicFile::commit() {
  require_open();
  stop_unless(check_lost_pages);
  flush();
  sync_pieces();
  if (replaces_) keep_owner_and_mode();
  if (retry_interrupted([&] { return file_calls().fsync(file_); }) == -1) discard_and_fail("sync", errno);
  close_file();
  if (file_calls().rename(temporary_.c_str(), target_.c_str()) == -1) discard_and_fail("rename to", errno);
  temporary_.clear();
  state_ = State::committed;
  const int synced = retry_interrupted([&] { return file_calls().fsync(folder_); });
  const int error = errno;
  discard();
  // Some file systems (network, user space) cannot sync a folder and say so with EINVAL.
  if (synced == -1 && error != EINVAL)
    fail(ErrorCode::io, "sync the folder of {}: {}; the new file is in place but may not survive a power cut",
         path_.native(), std::generic_category().message(error));
}

void AtomicFile::discard() noexcept {
  const FileCalls& calls = file_calls();
  if (file_ != -1) calls.close(std::exchange(file_, -1));
  if (!temporary_.empty()) calls.unlink(temporary_.c_str());
  temporary_.clear();
  if (folder_ != -1) calls.close(std::exchange(folder_, -1));
  if (state_ == State::open) state_ = State::discarded;
}

void AtomicFile::discard_and_fail(const char* attempt, int error) {
  const ErrorCode code = temporary_.empty() ? ErrorCode::cannot_create : ErrorCode::io;
  discard();
  fail_file(code, attempt, path_, error);
}

}  // namespace nearwise
